// The k-th largest of some values.
#pragma once

#include "arrays.h"

#define INTERVALS 512 // in which values are counted to find about the k-th

// A value that at least k of so many values reach and that is close to the k-th largest, 1 <= k <= count.
//
// Counts the values in equal intervals: one pass, where a selection would take several.
static inline int64_t kth_bound(const int64_t *values, int64_t count, int64_t k) {
    int64_t smallest = values[0], largest = values[0], counts[INTERVALS] = {0};
    for (int64_t place = 1; place < count; place++) {
        smallest = values[place] < smallest ? values[place] : smallest;
        largest = values[place] > largest ? values[place] : largest;
    }
    int shift = 0;
    while ((uint64_t)(largest - smallest) >> shift >= INTERVALS) shift++;
    for (int64_t place = 0; place < count; place++) counts[(uint64_t)(values[place] - smallest) >> shift]++;
    int interval = INTERVALS;
    for (int64_t reached = 0; reached < k;) reached += counts[--interval];
    return smallest + (int64_t)((uint64_t)interval << shift);
}

// The k-th largest of so many values, 1 <= k <= count, none of which is NaN; their order changes.
//
// Hoare's FIND (1961), with the median of three values as what the others are compared with.
static inline float kth_largest(float *values, int64_t count, int64_t k) {
    int64_t wanted = count - k, low = 0, high = count - 1;
    while (low < high) {
        float first = values[low], middle = values[low + (high - low) / 2], last = values[high];
        float less = first < middle ? first : middle, more = first < middle ? middle : first;
        float pivot = last < less ? less : last > more ? more : last;
        int64_t left = low, right = high;
        while (left <= right) {
            while (values[left] < pivot) left++;
            while (values[right] > pivot) right--;
            if (left > right) break;
            float former = values[left];
            values[left++] = values[right];
            values[right--] = former;
        }
        if (wanted <= right)
            high = right;
        else if (wanted >= left)
            low = left;
        else
            break;
    }
    return values[wanted];
}
