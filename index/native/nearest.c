// The nearest centroid of vectors, by way of centroids in groups.
//
// A vector meets the centers of all groups, then the centroids of the group whose center is nearest, and then those
// of each group that reaches farther than the best of these. Vectors and centroids are bytes: products are exact, and
// what a vector finds does not depend on those beside it.

#include <math.h>

#include "panel_products.h"

enum { VECTORS_OF_BLOCK = 256 }; // that share what is read of a group

// The best product of each lane so far, less half of the centroid's squared length, and the centroid's number.
typedef struct {
    floats best;
    ints number;
} nearest_so_far;

// Centroids in panels: halves of their squared lengths, without end where a lane has none.
typedef struct {
    const uint8_t *panels;
    const float *halves;
    const uint16_t *numbers; // of centroids; NULL for centers
} in_panels;

// Vectors as bytes. starts: what takes WEIGHT_OFFSET out of their products.
typedef struct {
    int8_t *numbers; // [count, size]
    float *scales;
    int32_t *starts;
    int32_t *places; // in the block
    int64_t size;
} some_vectors;

INLINED floats scores_of(ints sums, float scale, const float *halves) {
    return to_floats(sums) * scale - *(const floats *)halves;
}

INLINED void score_tile(
    const some_vectors *vectors, int64_t row, int row_count, const in_panels *centers, int64_t panel, int panel_count,
    float *scores, int64_t width
) {
    ints sums[MOST_ROWS][MOST_PANELS];
    multiply_byte_panels(
        vectors->numbers + row * vectors->size, vectors->size, row_count,
        centers->panels + panel * vectors->size * LANES, panel_count, vectors->size / LANE_BYTES,
        vectors->starts + row, sums
    );
#pragma GCC unroll 16
    for (int at = 0; at < row_count; at++)
#pragma GCC unroll 2
        for (int beside = 0; beside < panel_count; beside++)
            *(floats *)(scores + (row + at) * width + (panel + beside) * LANES) =
                scores_of(sums[at][beside], vectors->scales[row + at], centers->halves + (panel + beside) * LANES);
}

// Raises the best of some vectors by a group, whose panels they meet one after the other.
INLINED void raise_rows(
    const some_vectors *vectors, int64_t row, int row_count, const in_panels *group, int64_t panels,
    nearest_so_far *found
) {
    nearest_so_far own[MOST_ROWS];
    for (int at = 0; at < row_count; at++) own[at] = found[vectors->places[row + at]];
    for (int64_t panel = 0; panel < panels; panel++) {
        ints sums[MOST_ROWS][MOST_PANELS], numbers;
        multiply_byte_panels(
            vectors->numbers + row * vectors->size, vectors->size, row_count,
            group->panels + panel * vectors->size * LANES, 1, vectors->size / LANE_BYTES, vectors->starts + row, sums
        );
        numbers = __builtin_convertvector(*(const unsigned_shorts *)(group->numbers + panel * LANES), ints);
#pragma GCC unroll 16
        for (int at = 0; at < row_count; at++) {
            floats scores = scores_of(sums[at][0], vectors->scales[row + at], group->halves + panel * LANES);
            ints higher = scores > own[at].best;
            own[at].number = (higher & numbers) | (~higher & own[at].number);
            own[at].best = (floats)((higher & (ints)scores) | (~higher & (ints)own[at].best));
        }
    }
    for (int at = 0; at < row_count; at++) found[vectors->places[row + at]] = own[at];
}

// Centroids in groups, and which vectors of a block shall meet each of them.
typedef struct {
    in_panels centroids;
    const int64_t *starts; // [count + 1] of each group's panels
    int64_t count;
    int32_t *waiting; // [count, VECTORS_OF_BLOCK]
    int32_t *waiting_counts;
} groups;

static inline void wait_for(groups *all, int64_t group, int64_t vector) {
    all->waiting[group * VECTORS_OF_BLOCK + all->waiting_counts[group]++] = (int32_t)vector;
}

// Lets vectors meet the groups that they wait for; `room` for as many is where they are brought together.
static inline void meet_groups(const some_vectors *block, groups *all, some_vectors *room, nearest_so_far *found) {
    int64_t size = block->size;
    for (int64_t group = 0; group < all->count; group++) {
        int32_t count = all->waiting_counts[group];
        if (!count) continue;
        all->waiting_counts[group] = 0;
        for (int32_t row = 0; row < count; row++) {
            int32_t place = all->waiting[group * VECTORS_OF_BLOCK + row];
            memcpy(room->numbers + row * size, block->numbers + place * size, (size_t)size);
            room->scales[row] = block->scales[place];
            room->starts[row] = block->starts[place];
            room->places[row] = place;
        }
        int64_t first = all->starts[group];
        in_panels own = {
            all->centroids.panels + first * size * LANES,
            all->centroids.halves + first * LANES,
            all->centroids.numbers + first * LANES,
        };
        int64_t row = 0, panels = all->starts[group + 1] - first;
#define RAISE(row, row_count, group, panels) raise_rows(room, row, row_count, group, panels, found)
        TILED_ROWS(RAISE, &own, panels, row, count);
#undef RAISE
    }
}

// The lane with the best product, of equal ones that with the lowest number.
static inline int best_lane(const nearest_so_far *found) {
    int best = 0;
    for (int lane = 1; lane < LANES; lane++)
        if (found->best[lane] > found->best[best] ||
            (found->best[lane] == found->best[best] && found->number[lane] < found->number[best]))
            best = lane;
    return best;
}

// A block's vectors, how near they are to the centers, and what is found of them.
typedef struct {
    some_vectors vectors;
    int64_t count, width; // of a row of scores
    float *scores; // [count, width]
    float *squares; // squared lengths
    nearest_so_far *found;
} block;

static inline void begin_block(block *own) {
    const some_vectors *vectors = &own->vectors;
    for (int64_t vector = 0; vector < own->count; vector++) {
        const int8_t *numbers = vectors->numbers + vector * vectors->size;
        int32_t sum = 0, square = 0;
        for (int64_t place = 0; place < vectors->size; place++) {
            sum += numbers[place];
            square += numbers[place] * numbers[place];
        }
        vectors->starts[vector] = -WEIGHT_OFFSET * sum;
        own->squares[vector] = (float)square * vectors->scales[vector] * vectors->scales[vector];
        for (int lane = 0; lane < LANES; lane++) own->found[vector].best[lane] = -INFINITY;
    }
}

static inline int64_t nearest_group(const float *scores, int64_t count) {
    int64_t nearest = 0;
    for (int64_t group = 1; group < count; group++)
        if (scores[group] > scores[nearest]) nearest = group;
    return nearest;
}

// Lets a vector meet those other groups that may have a nearer centroid.
static inline void wait_for_others(const block *own, int64_t vector, const float *reaches, groups *all) {
    const float *scores = own->scores + vector * own->width;
    const nearest_so_far *found = &own->found[vector];
    int64_t nearest = nearest_group(scores, all->count);
    float square = own->squares[vector] - 2 * found->best[best_lane(found)];
    float distance = square > 0 ? sqrtf(square) : 0;
    for (int64_t group = 0; group < all->count; group++) {
        float within = distance + reaches[group];
        if (own->squares[vector] - 2 * scores[group] < within * within && group != nearest)
            wait_for(all, group, vector);
    }
}

static int nearest_centroids(call *call) {
    int64_t count = LENGTH(0), size = WIDTH(0), width = LENGTH(2) * LANES, group_count = LENGTH(5) - 1;
    const in_panels centers = {ARRAY(uint8_t, 2), ARRAY(float, 3), NULL};
    const int64_t *starts = ARRAY(int64_t, 5);
    if (WIDTH(2) % 2 || size != WIDTH(2) * LANE_BYTES)
        return damaged(call, "the values of a vector", size, WIDTH(2) * LANE_BYTES + 1);
    if (group_count < 1 || group_count > width) return damaged(call, "the number of groups", group_count, width + 1);
    for (int64_t group = 0; group <= group_count; group++)
        if (starts[group] < (group ? starts[group - 1] : 0) || starts[group] > LENGTH(6))
            return damaged(call, "the start of a group", starts[group], LENGTH(6) + 1);
    SPACE(int8_t, room_numbers, VECTORS_OF_BLOCK * size);
    SPACE(float, room_scales, VECTORS_OF_BLOCK);
    SPACE(int32_t, room_starts, VECTORS_OF_BLOCK);
    SPACE(int32_t, room_places, VECTORS_OF_BLOCK);
    SPACE(int32_t, block_starts, VECTORS_OF_BLOCK);
    SPACE(float, scores, VECTORS_OF_BLOCK * width);
    SPACE(float, squares, VECTORS_OF_BLOCK);
    SPACE(nearest_so_far, found, VECTORS_OF_BLOCK);
    SPACE(int32_t, waiting, group_count * VECTORS_OF_BLOCK);
    SPACE(int32_t, waiting_counts, group_count);
    some_vectors room = {room_numbers, room_scales, room_starts, room_places, size};
    groups all = {
        {ARRAY(uint8_t, 6), ARRAY(float, 7), ARRAY(uint16_t, 8)}, starts, group_count, waiting, waiting_counts,
    };
    for (int64_t first = 0; first < count; first += VECTORS_OF_BLOCK) {
        block own = {
            {ARRAY(int8_t, 0) + first * size, ARRAY(float, 1) + first, block_starts, NULL, size},
            count - first < VECTORS_OF_BLOCK ? count - first : VECTORS_OF_BLOCK,
            width,
            scores,
            squares,
            found,
        };
        begin_block(&own);
#define SCORE(row, row_count, panel, panel_count)                                                                \
    score_tile(&own.vectors, row, row_count, &centers, panel, panel_count, scores, width)
        TILED(SCORE, own.count, LENGTH(2));
#undef SCORE
        for (int64_t vector = 0; vector < own.count; vector++)
            wait_for(&all, nearest_group(scores + vector * width, group_count), vector);
        meet_groups(&own.vectors, &all, &room, found);
        for (int64_t vector = 0; vector < own.count; vector++)
            wait_for_others(&own, vector, ARRAY(float, 4), &all);
        meet_groups(&own.vectors, &all, &room, found);
        for (int64_t vector = 0; vector < own.count; vector++)
            ARRAY(uint16_t, 9)[first + vector] = (uint16_t)found[vector].number[best_lane(&found[vector])];
    }
    return DONE;
}

const kernel_entry TABLE(nearest)[] = {
    {"nearest_centroids",
     "vectors: int8[N, S], scales: float32[N], centers: uint8[A, V, 16, 4], center_halves: float32[A, 16], "
     "reaches: float32[A, 16], starts: int64[X], panels: uint8[P, V, 16, 4], halves: float32[P, 16], "
     "numbers: uint16[P, 16], nearest: uint16[N]!",
     nearest_centroids, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
