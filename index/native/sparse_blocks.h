// The part of a search that depends on how wide accumulators are: included once for each width, as ACCUMULATOR,
// with names that OF_WIDTH tells apart.

// Adds floor(impact * multiplier / 256) + 1 where the term occurs.
static void OF_WIDTH(add_postings)(
    ACCUMULATOR *restrict sums, const uint16_t *restrict documents, const uint8_t *restrict impacts, int64_t count,
    uint16_t multiplier
) {
    for (int64_t position = 0; position < count; position++)
        sums[documents[position]] += (uint16_t)(((uint32_t)impacts[position] * multiplier >> 8) + 1);
}

// Adds floor(impact * multiplier / 256) everywhere; 16-bit steps let one instruction do many.
static void OF_WIDTH(add_column)(
    ACCUMULATOR *restrict sums, const uint8_t *restrict column, int64_t count, uint16_t multiplier
) {
    uint16_t high = multiplier >> 8, low = multiplier & 255;
    for (int64_t document = 0; document < count; document++) {
        uint16_t impact = column[document], rest = (uint16_t)(impact * low) >> 8;
        sums[document] += (uint16_t)((uint16_t)(impact * high) + rest);
    }
}

// The largest of the accumulators STRIDE apart from each of the first ones; how many lanes there are.
static int64_t OF_WIDTH(find_maxima)(
    const ACCUMULATOR *restrict sums, int64_t count, ACCUMULATOR *restrict maxima
) {
    int64_t lanes = count < STRIDE ? count : STRIDE;
    memcpy(maxima, sums, (size_t)lanes * sizeof *sums);
    for (int64_t start = STRIDE; start < count; start += STRIDE) {
        int64_t here = count - start < STRIDE ? count - start : STRIDE;
        for (int64_t lane = 0; lane < here; lane++)
            maxima[lane] = sums[start + lane] > maxima[lane] ? sums[start + lane] : maxima[lane];
    }
    return lanes;
}

// The floor that the maxima of a first block give.
static int64_t OF_WIDTH(first_floor)(const block_search *search, const ACCUMULATOR *maxima, int64_t lanes, int64_t added) {
    int64_t wide[STRIDE];
    for (int64_t lane = 0; lane < lanes; lane++) wide[lane] = maxima[lane];
    int64_t reached = kth_bound(wide, lanes, search->k) + added;
    int64_t floor = (int64_t)((double)(reached - search->slack) * search->share);
    return floor > 1 ? floor : 1;
}

// Adds the entries of a block that are deferred, or those that are not.
static void OF_WIDTH(add_entries)(block_search *search, ACCUMULATOR *sums, int64_t count, bool deferred) {
    for (int64_t number = 0; number < search->entry_count; number++) {
        const block_entry *entry = &search->entries[number];
        if (entry->deferred != deferred) continue;
        search->impacts_read += entry->count;
        if (entry->documents)
            OF_WIDTH(add_postings)(sums, entry->documents, entry->impacts, entry->count, entry->multiplier);
    }
    for (int64_t start = 0; start < count; start += CHUNK)
        for (int64_t number = 0; number < search->entry_count; number++) {
            const block_entry *entry = &search->entries[number];
            if (entry->deferred != deferred || entry->documents) continue;
            int64_t here = count - start < CHUNK ? count - start : CHUNK;
            OF_WIDTH(add_column)(sums + start, entry->impacts + start, here, entry->multiplier);
        }
}

// Takes the documents of a block that reach the floor.
static int OF_WIDTH(take_block)(
    call *call, block_search *search, int64_t segment, int64_t first, const ACCUMULATOR *sums, int64_t count,
    const uint8_t *allowed
) {
    ACCUMULATOR maxima[STRIDE];
    int64_t passed[STRIDE + 1], added = search->columns;
    int64_t lanes = OF_WIDTH(find_maxima)(sums, count, maxima), floor = floor_of(search), passing = 0;
    if (floor == 1 && lanes > 0 && lanes >= search->k) floor = OF_WIDTH(first_floor)(search, maxima, lanes, added);
    // Without branches, as a processor cannot foresee which documents pass.
    int64_t needed = floor > added ? floor - added : 0;
    for (int64_t lane = 0; lane < lanes; lane++) {
        passed[passing] = lane;
        passing += maxima[lane] >= needed;
    }
    int failure = make_room_for(call, &search->found, passing * (BLOCK / STRIDE) + 1);
    if (failure) return failure;
    found_documents *found = &search->found;
    int64_t before = found->count, after = before;
    for (int64_t place = 0; place < passing; place++)
        for (int64_t document = passed[place]; document < count; document += STRIDE) {
            found->rows[after] = first + document;
            after += (sums[document] >= needed) & (!allowed || allowed[document]);
        }
    found->count = after;
    for (int64_t place = before; place < after; place++)
        found->bounds[place] = (int64_t)sums[found->rows[place] - first] + added;
    settle_found(search, segment, before, floor);
    return DONE;
}

// Takes the documents of a block that reach the floor, where deferred entries are not added; sets how many may
// reach it with the most that these add, and takes none where they are too many to be looked up.
static int OF_WIDTH(take_passing)(
    call *call, block_search *search, int64_t segment, int64_t first, const ACCUMULATOR *sums, int64_t count,
    const uint8_t *allowed, int64_t *passing
) {
    ACCUMULATOR maxima[STRIDE];
    int64_t documents[LOOKED_UP + BLOCK / STRIDE + 1], most = search->most_deferred + search->columns;
    int64_t lanes = OF_WIDTH(find_maxima)(sums, count, maxima), floor = floor_of(search);
    *passing = 0;
    for (int64_t lane = 0; lane < lanes && *passing <= LOOKED_UP; lane++) {
        if (maxima[lane] + most < floor) continue;
        for (int64_t document = lane; document < count; document += STRIDE) {
            documents[*passing] = document;
            *passing += (sums[document] + most >= floor) & (!allowed || allowed[document]);
        }
    }
    if (*passing > LOOKED_UP) return DONE;
    found_documents *found = &search->found;
    int failure = make_room_for(call, found, *passing + 1);
    if (failure) return failure;
    int64_t before = found->count;
    for (int64_t place = 0; place < *passing; place++) {
        int64_t document = documents[place];
        found->rows[found->count] = first + document;
        found->bounds[found->count] = lowered_bound(search, document, sums[document] + most, floor);
        found->count += found->bounds[found->count] >= floor;
    }
    settle_found(search, segment, before, floor);
    return DONE;
}

static int OF_WIDTH(search_segment)(
    call *call, block_search *search, const view *index, const view *mask, int64_t segment, ACCUMULATOR *sums
) {
    int64_t documents = index[INDEX_INDPTR].shape[0] - 1, width = index[INDEX_COLUMNS].shape[1], known;
    const uint8_t *allowed = OF(mask, ALLOWED, uint8_t);
    int failure = begin_segment(call, search, index, segment, &known);
    if (failure || !known) return failure;
    int64_t needed = documents < BLOCK ? documents : BLOCK;
    if (width < needed && index[INDEX_COLUMNS].shape[0]) return damaged(call, "the length of columns", width, needed);
    if (allowed && mask[ALLOWED].shape[0] != documents)
        return damaged(call, "the length of a mask", mask[ALLOWED].shape[0], documents);
    for (int64_t first = 0; first < documents; first += BLOCK) {
        int64_t count = documents - first < BLOCK ? documents - first : BLOCK, passing = 0;
        const uint8_t *here = allowed ? allowed + first : NULL;
        failure = gather_block(call, search, index, segment, first / BLOCK, count);
        if (failure) return failure;
        if (!search->entry_count) continue;
        memset(sums, 0, (size_t)count * sizeof *sums);
        OF_WIDTH(add_entries)(search, sums, count, false);
        if (search->most_deferred) {
            failure = OF_WIDTH(take_passing)(call, search, segment, first, sums, count, here, &passing);
            if (failure) return failure;
            adapt_share(search, passing);
            if (passing <= LOOKED_UP) continue;
            OF_WIDTH(add_entries)(search, sums, count, true);
        }
        if (allowed)
            for (int64_t document = 0; document < count; document++) sums[document] *= here[document] != 0;
        failure = OF_WIDTH(take_block)(call, search, segment, first, sums, count, here);
        if (failure) return failure;
    }
    return DONE;
}
