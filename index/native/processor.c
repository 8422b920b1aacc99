// Which instructions this processor has and the system keeps the registers of.
//
// Asked of the processor itself, as `__builtin_cpu_supports` is 0 for everything where Zig links it; on ARM of the
// system, which alone may ask there.

#include "processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

static uint64_t kept_registers(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// Bits that must all be set.
static bool all(uint64_t value, uint64_t bits) { return (value & bits) == bits; }

enum { SSE = 1 << 1, AVX = 1 << 2, AVX512 = 7 << 5, AMX = 3 << 17 }; // of the registers

bool has_avx2(void) {
    const uint32_t in_first = bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C | bit_POPCNT | bit_MOVBE;
    const uint32_t in_seventh = bit_AVX2 | bit_BMI | bit_BMI2;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all(c, in_first) || !all(kept_registers(), SSE | AVX)) return false;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !all(c, bit_LZCNT)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && all(b, in_seventh);
}

bool has_avx512_vnni(void) {
    const uint32_t in_seventh = bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL;
    uint32_t a, b, c, d;
    if (!has_avx2() || !all(kept_registers(), SSE | AVX | AVX512)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && all(b, in_seventh) && all(c, bit_AVX512VNNI);
}

// Linux keeps AMX's large registers only for a process that asks for them; it then does so for all of its threads.
static bool may_use_amx(void) {
#if defined(__linux__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0;
#else
    return false;
#endif
}

bool has_amx(void) {
    static int found = -1; // until it was asked for
    const uint32_t in_seventh = 1u << 24 | 1u << 25; // tiles, and products of bytes with them
    uint32_t a, b, c, d;
    if (found < 0)
        found = has_avx512_vnni() && all(kept_registers(), AMX) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
                all(d, in_seventh) && may_use_amx();
    return found;
}

#elif defined(__aarch64__) && defined(__APPLE__)
#include <stddef.h>
#include <sys/sysctl.h>

static bool has_feature(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value;
}

bool has_neon_dotprod(void) { return has_feature("hw.optional.arm.FEAT_DotProd"); }
bool has_neon_i8mm(void) { return has_neon_dotprod() && has_feature("hw.optional.arm.FEAT_I8MM"); }

#elif defined(__aarch64__)
#include <sys/auxv.h>

// Bits of AT_HWCAP and AT_HWCAP2, as Linux numbers them.
enum { DOT_PRODUCTS = 1 << 20, BYTE_MATRICES = 1 << 13 };

bool has_neon_dotprod(void) { return getauxval(AT_HWCAP) & DOT_PRODUCTS; }
bool has_neon_i8mm(void) { return has_neon_dotprod() && (getauxval(AT_HWCAP2) & BYTE_MATRICES); }
#endif

bool has_plain(void) { return true; }
