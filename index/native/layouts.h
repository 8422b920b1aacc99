// Records: arrays that belong together, checked once when they are opened.
#pragma once

#include "arrays.h"

extern const layout_entry layouts_of_records[];
