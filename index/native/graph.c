// A walk over an HNSW graph that FAISS built (Malkov and Yashunin, arXiv 1603.09320, algorithms 2 and 5), which
// waits for memory as little as it can: `index/dense/graph.py` says how.

#include "arrays.h"
#include "halves.h"
#include "layouts.h"
#include "memory.h"

// FAISS's files have numbers wherever they come to lie.
typedef int32_t link __attribute__((aligned(1), may_alias));
typedef int64_t offset __attribute__((aligned(1), may_alias));

typedef struct {
    const half *vectors;
    const link *links;
    const offset *offsets;
    const int64_t *widths;
    int64_t nodes, dimension, link_count, levels;
    const float *query;
} graph;

// A heap has the entry with the lowest key first.
typedef struct {
    float key;
    int32_t node;
} entry;

static inline float score_of(const graph *walked, int64_t node) {
    return half_product(walked->vectors + node * walked->dimension, walked->query, walked->dimension);
}

static inline void bring_vector_near(const graph *walked, int64_t node) {
    bring_near(walked->vectors + node * walked->dimension, walked->dimension * (int64_t)sizeof(half));
}

static void push(entry *heap, int64_t count, entry added) {
    int64_t place = count;
    for (; place > 0 && heap[(place - 1) / 2].key > added.key; place = (place - 1) / 2)
        heap[place] = heap[(place - 1) / 2];
    heap[place] = added;
}

// Puts another in place of the lowest of a heap of `count`.
static void replace_first(entry *heap, int64_t count, entry other) {
    int64_t place = 0;
    while (2 * place + 1 < count) {
        int64_t child = 2 * place + 1;
        child += child + 1 < count && heap[child + 1].key < heap[child].key;
        if (heap[child].key >= other.key) break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = other;
}

// The nearest node that waits, -1 where none does or its score is below a floor; keys are scores below zero.
static int64_t take_nearest(entry *near, int64_t *waiting, float floor) {
    if (*waiting == 0 || -near[0].key < floor) return -1;
    int64_t node = near[0].node;
    --*waiting;
    replace_first(near, *waiting, near[*waiting]);
    return node;
}

// Whether a node is met for the first time, which is kept in bits.
static inline bool is_new(uint64_t *seen, int64_t node) {
    uint64_t bit = UINT64_C(1) << (node & 63), former = seen[node >> 6];
    seen[node >> 6] = former | bit;
    return !(former & bit);
}

// The links of a node on a level, free ones at their end left out; NULL where they do not lie within all links.
static const link *links_of(const graph *walked, int64_t node, int64_t level, int64_t *count) {
    int64_t first = walked->offsets[node];
    if (outside(first, walked->link_count + 1)) return NULL;
    if (first + walked->widths[level + 1] > walked->link_count) return NULL;
    const link *links = walked->links + first + walked->widths[level];
    int64_t width = walked->widths[level + 1] - walked->widths[level];
    for (*count = 0; *count < width && links[*count] >= 0;) ++*count;
    return links;
}

#define CHECKED_LINKS(name, count, walked, node, level)                                                          \
    int64_t count;                                                                                               \
    const link *name = links_of(&(walked), node, level, &count);                                              \
    if (!name) return damaged(call, "the offset of a node's links", (walked).offsets[node], (walked).link_count); \
    for (int64_t checked = 0; checked < count; checked++)                                                        \
        if (outside(name[checked], (walked).nodes)) return damaged(call, "a link", name[checked], (walked).nodes)

// Goes to the node of a level from which no link leads to a better one.
static int climb(call *call, const graph *walked, int64_t level, int64_t *node, float *score) {
    for (int64_t former = -1; *node != former;) {
        former = *node;
        CHECKED_LINKS(links, count, *walked, former, level);
        for (int64_t place = 0; place < count; place++) bring_vector_near(walked, links[place]);
        for (int64_t place = 0; place < count; place++) {
            float other = score_of(walked, links[place]);
            if (other > *score) {
                *node = links[place];
                *score = other;
            }
        }
    }
    return DONE;
}

// Reads the graph and checks all but its links, which are checked as they are met.
static int open_graph(call *call, graph *walked) {
    if (RECORD_COUNT(0) != 1) return damaged(call, "the number of graphs", RECORD_COUNT(0), 2);
    const view *record = RECORDS(0)[0];
    *walked = (graph){
        .vectors = OF(record, GRAPH_VECTORS, half),
        .links = OF(record, GRAPH_LINKS, link),
        .offsets = OF(record, GRAPH_OFFSETS, offset),
        .widths = OF(record, GRAPH_WIDTHS, int64_t),
        .nodes = record[GRAPH_VECTORS].shape[0],
        .dimension = record[GRAPH_VECTORS].shape[1],
        .link_count = record[GRAPH_LINKS].shape[0] / (int64_t)sizeof(link),
        .levels = record[GRAPH_WIDTHS].shape[0] - 1,
        .query = ARRAY(float, 1),
    };
    int64_t offset_count = record[GRAPH_OFFSETS].shape[0] / (int64_t)sizeof(offset);
    if (offset_count != walked->nodes + 1)
        return damaged(call, "the number of nodes", offset_count - 1, walked->nodes + 1);
    int64_t entry = INTEGER(2), top = INTEGER(3);
    if (LENGTH(1) != walked->dimension) return damaged(call, "a dimension", LENGTH(1), walked->dimension + 1);
    if (outside(entry, walked->nodes)) return damaged(call, "the node to begin with", entry, walked->nodes);
    if (outside(top, walked->levels)) return damaged(call, "the level to begin with", top, walked->levels);
    for (int64_t level = 0, former = 0; level <= top + 1; former = walked->widths[level++])
        if (walked->widths[level] < former || walked->widths[level] > walked->link_count)
            return damaged(call, "the width of a level", walked->widths[level], walked->link_count + 1);
    if (INTEGER(4) < 1) return damaged(call, "the number of kept nodes", INTEGER(4), walked->nodes + 1);
    return DONE;
}

static int walk_graph(call *call) {
    graph walked = {0};
    int failure = open_graph(call, &walked);
    if (failure) return failure;
    int64_t node = INTEGER(2), effort = INTEGER(4) < walked.nodes ? INTEGER(4) : walked.nodes;
    float score = score_of(&walked, node);
    for (int64_t level = INTEGER(3); level > 0; level--) {
        failure = climb(call, &walked, level, &node, &score);
        if (failure) return failure;
    }
    int64_t kept = 1, waiting = 0, room = 4 * effort;
    SPACE(uint64_t, seen, walked.nodes / 64 + 1);
    SPACE(int32_t, fresh, walked.widths[1] + 1);
    SPACE(entry, best, effort);
    SPACE(entry, near, room);
    is_new(seen, node);
    push(best, 0, (entry){score, (int32_t)node});
    while (node >= 0) {
        CHECKED_LINKS(links, count, walked, node, 0);
        int64_t met = 0;
        for (int64_t place = 0; place < count; place++)
            if (is_new(seen, links[place])) {
                fresh[met++] = links[place];
                bring_vector_near(&walked, links[place]);
            }
        node = take_nearest(near, &waiting, kept == effort ? best[0].key : -__builtin_inff());
        if (node >= 0 && !outside(walked.offsets[node], walked.link_count))
            bring_near(walked.links + walked.offsets[node], walked.widths[1] * (int64_t)sizeof *walked.links);
        for (int64_t place = 0; place < met; place++) {
            score = score_of(&walked, fresh[place]);
            if (kept < effort)
                push(best, kept++, (entry){score, fresh[place]});
            else if (score > best[0].key)
                replace_first(best, kept, (entry){score, fresh[place]});
            else
                continue;
            if (waiting == room) {
                room *= 2;
                near = more_space(call, near, room, sizeof *near);
                if (!near) return NO_MEMORY;
            }
            push(near, waiting++, (entry){-score, fresh[place]});
        }
        if (node < 0) // what came of the last one may be near enough
            node = take_nearest(near, &waiting, kept == effort ? best[0].key : -__builtin_inff());
    }
    RESULT(int64_t, rows, 0, kept);
    RESULT(float, scores, 1, kept);
    for (int64_t place = 0; place < kept; place++) {
        rows[place] = best[place].node;
        scores[place] = best[place].key;
    }
    return DONE;
}

const kernel_entry TABLE(graph)[] = {
    {"walk_graph",
     "graph: dense_graph[S], query: float32[D], entry: int, top: int, effort: int -> int64[], float32[]",
     walk_graph, RELEASES_LOCK},
    {NULL, NULL, NULL, 0},
};
