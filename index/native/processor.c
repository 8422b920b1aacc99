// Which instructions this processor has and the system keeps the registers of.
//
// Asked of the processor itself: `__builtin_cpu_supports` is 0 for everything where Zig links it.

#include "processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdint.h>

static uint64_t kept_registers(void) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// Bits that must all be set.
static bool all(uint64_t value, uint64_t bits) { return (value & bits) == bits; }

enum { SSE = 1 << 1, AVX = 1 << 2, AVX512 = 7 << 5 }; // of the registers

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
#endif

bool has_plain(void) { return true; }
