// Whether this processor has what a variant of the kernels is compiled for.
#pragma once

#include <stdbool.h>

bool has_amx(void);
bool has_avx512_vnni(void);
bool has_avx2(void);
bool has_neon_i8mm(void);
bool has_neon_dotprod(void);
bool has_plain(void);
