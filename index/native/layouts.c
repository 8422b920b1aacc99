// The layouts of records; the numbers of their fields are in `layouts.h`.

#include "layouts.h"

const layout_entry layouts_of_records[] = {
    {NULL, NULL},
};
