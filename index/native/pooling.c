// Token pooling: clusters by Ward's criterion, and their means.

#include <math.h>
#include <string.h>

#include "arrays.h"

#define SUM_LANES 16
#define AT_ONCE 4 // distances from one vector, whose sums do not wait for each other

typedef struct {
    int64_t count; // of a run's tokens
    float *distances; // [count, count]
    float *sizes, *least; // of each cluster; the distance of the nearest of those behind it
    int64_t *nearest, *member_of, *places;
    bool *alive;
} run_space;

typedef float distance_sums __attribute__((vector_size(4 * SUM_LANES), aligned(4), may_alias));

static inline float sum_of_distances(distance_sums *sums) {
    for (int half = SUM_LANES / 2; half; half /= 2)
        for (int lane = 0; lane < half; lane++) (*sums)[lane] += (*sums)[lane + half];
    return (*sums)[0];
}

// Half of the squared distances of one vector from some others.
static void half_distances(const float *one, const float *const others[AT_ONCE], int64_t width, float *halves) {
    distance_sums sums[AT_ONCE] = {0};
    int64_t place = 0;
    for (; place + SUM_LANES <= width; place += SUM_LANES)
        for (int other = 0; other < AT_ONCE; other++) {
            const distance_sums *of_one = (const distance_sums *)(one + place);
            distance_sums difference = *of_one - *(const distance_sums *)(others[other] + place);
            sums[other] += difference * difference;
        }
    for (int other = 0; other < AT_ONCE; other++) {
        float total = sum_of_distances(&sums[other]);
        for (int64_t rest = place; rest < width; rest++)
            total += (one[rest] - others[other][rest]) * (one[rest] - others[other][rest]);
        halves[other] = total / 2;
    }
}

// What joining two tokens adds to the squared distances from means: half of their squared distance. Some vectors
// stay in the nearest cache while all behind them are compared.
static void set_distances(const run_space *own, const float *vectors, int64_t width) {
    for (int64_t first = 0; first < own->count; first += AT_ONCE) {
        const float *others[AT_ONCE];
        int64_t count = own->count - first < AT_ONCE ? own->count - first : AT_ONCE;
        for (int64_t other = 0; other < AT_ONCE; other++)
            others[other] = vectors + (first + (other < count ? other : 0)) * width;
        for (int64_t one = first; one < own->count; one++) {
            float halves[AT_ONCE];
            half_distances(vectors + one * width, others, width, halves);
            for (int64_t other = 0; other < count; other++)
                own->distances[one * own->count + first + other] =
                    own->distances[(first + other) * own->count + one] = halves[other];
        }
    }
}

// Finds the nearest of the clusters behind one.
static void look_behind(const run_space *own, int64_t one) {
    const float *distances = own->distances + one * own->count;
    float least = INFINITY;
    for (int64_t other = one + 1; other < own->count; other++)
        if (own->alive[other] && distances[other] < least) {
            own->nearest[one] = other;
            least = distances[other];
        }
    own->least[one] = least;
}

static int64_t place_of_least(const run_space *own) {
    int64_t place = 0;
    for (int64_t other = 1; other < own->count; other++)
        if (own->least[other] < own->least[place]) place = other;
    return place;
}

// Joins `other` to `one`: Lance and Williams's recurrence for Ward's criterion.
static void join_clusters(const run_space *own, int64_t one, int64_t other) {
    int64_t count = own->count;
    float *of_one = own->distances + one * count, *of_other = own->distances + other * count;
    const float *sizes = own->sizes;
    float joined = of_one[other];
    own->alive[other] = false;
    own->least[other] = INFINITY;
    for (int64_t third = 0; third < count; third++) {
        if (own->member_of[third] == other) own->member_of[third] = one;
        if (!own->alive[third] || third == one) continue;
        float both = sizes[one] + sizes[other] + sizes[third];
        float to_one = (sizes[third] + sizes[one]) * of_one[third];
        float to_other = (sizes[third] + sizes[other]) * of_other[third];
        float distance = (to_one + to_other - sizes[third] * joined) / both;
        own->distances[third * count + one] = of_one[third] = distance;
    }
    own->sizes[one] += sizes[other];
    for (int64_t third = 0; third < count; third++) {
        if (!own->alive[third]) continue;
        int64_t nearest = own->nearest[third];
        if (third == one || (third < other && (nearest == other || nearest == one)))
            look_behind(own, third);
        else if (third < one && of_one[third] < own->least[third]) {
            own->nearest[third] = one;
            own->least[third] = of_one[third];
        }
    }
}

// Sets which cluster each token is of, named by its first one; each cluster knows the nearest of those behind it.
// False where distances are not finite, so that nothing is nearest.
static bool find_clusters(const run_space *own, const float *vectors, int64_t width, int64_t wanted) {
    set_distances(own, vectors, width);
    for (int64_t token = 0; token < own->count; token++) {
        own->sizes[token] = 1;
        own->alive[token] = true;
        own->member_of[token] = token;
        own->nearest[token] = 0;
        own->least[token] = INFINITY;
    }
    for (int64_t one = 0; one < own->count - 1; one++) look_behind(own, one);
    for (int64_t left = own->count; left > wanted; left--) {
        int64_t one = place_of_least(own);
        if (!(own->least[one] < INFINITY)) return false;
        join_clusters(own, one, own->nearest[one]);
    }
    return true;
}

// Writes the mean of each cluster, scaled to length 1; where that is 0, its first vector.
static void write_means(const run_space *own, const float *vectors, int64_t width, float *means) {
    int64_t count = 0;
    for (int64_t token = 0; token < own->count; token++) {
        const float *vector = vectors + token * width;
        if (own->member_of[token] == token) {
            own->places[token] = count;
            memcpy(means + count++ * width, vector, (size_t)width * sizeof *means);
        } else {
            float *restrict mean = means + own->places[own->member_of[token]] * width;
            for (int64_t place = 0; place < width; place++) mean[place] += vector[place];
        }
    }
    for (int64_t token = 0; token < own->count; token++) {
        if (own->member_of[token] != token) continue;
        float *mean = means + own->places[token] * width, squares = 0;
        for (int64_t place = 0; place < width; place++) squares += mean[place] * mean[place];
        float length = sqrtf(squares);
        if (length > 1e-6f)
            for (int64_t place = 0; place < width; place++) mean[place] /= length;
        else
            memcpy(mean, vectors + token * width, (size_t)width * sizeof *mean);
    }
}

// How many tokens the longest run has, at most `most`; -1 where offsets or starts lead out of what they are of.
static int64_t longest_run(call *call, int64_t factor, int64_t most) {
    const int64_t *offsets = ARRAY(int64_t, 1), *starts = ARRAY(int64_t, 2);
    int64_t longest = 0;
    for (int64_t text = 0; text + 1 < LENGTH(1); text++) {
        int64_t count = offsets[text + 1] - offsets[text];
        if (offsets[text] < 0 || count < 0 || offsets[text + 1] > LENGTH(0)) return -1;
        int64_t left = count / most * ((most + factor - 1) / factor) + (count % most + factor - 1) / factor;
        if (starts[text] < 0 || starts[text] > LENGTH(5) - left) return -1;
        longest = count > longest ? count : longest;
    }
    return longest < most ? longest : most;
}

static int pool_tokens(call *call) {
    const float *vectors = ARRAY(float, 0);
    const int64_t *offsets = ARRAY(int64_t, 1), *starts = ARRAY(int64_t, 2), factor = INTEGER(3), most = INTEGER(4);
    float *found = ARRAY(float, 5);
    int64_t width = WIDTH(0);
    if (factor < 1) return damaged(call, "how many tokens share a vector", factor, INT64_MAX);
    if (outside(most - 1, INT16_MAX)) return damaged(call, "the tokens of a run", most, INT16_MAX);
    int64_t longest = longest_run(call, factor, most);
    if (longest < 0) return damaged(call, "where the tokens of a text lie", longest, LENGTH(0));
    SPACE(float, distances, longest * longest);
    SPACE(float, sizes, longest);
    SPACE(float, least, longest);
    SPACE(int64_t, nearest, longest);
    SPACE(int64_t, member_of, longest);
    SPACE(int64_t, places, longest);
    SPACE(bool, alive, longest);
    for (int64_t text = 0; text + 1 < LENGTH(1); text++) {
        int64_t place = starts[text];
        for (int64_t first = offsets[text]; first < offsets[text + 1]; first += most) {
            int64_t rest = offsets[text + 1] - first, count = rest < most ? rest : most;
            int64_t wanted = (count + factor - 1) / factor;
            run_space own = {count, distances, sizes, least, nearest, member_of, places, alive};
            if (!find_clusters(&own, vectors + first * width, width, wanted))
                return damaged(call, "a text with values that are not finite", text, 0);
            write_means(&own, vectors + first * width, width, found + place * width);
            place += wanted;
        }
    }
    return DONE;
}

const kernel_entry TABLE(pooling)[] = {
    {"pool_tokens",
     "vectors: float32[T, C], offsets: int64[N+1], starts: int64[N+1], factor: int, run: int, "
     "found: float32[P, C]!",
     pool_tokens, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
