// The device programs. docs/state.md defines WMF1; state/wmf1.py is the same function for host memory.
//
// Every program (a warp of `fingerprint`, a block of `copy_pieces`) works through its own shares, lines of a table in
// device memory. Addresses are plain numbers: a tensor, an arena and another process's mapping are the same here.

typedef unsigned long long u64;
typedef unsigned int u32;

constexpr u32 ALL = 0xffffffffu;
constexpr int ROW_BYTES = 4096;
constexpr int ROW_CHUNKS = ROW_BYTES / 16;

__device__ __forceinline__ u64 mixed(u64 z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

__device__ __forceinline__ void fetch(uint4* to, const char* from) {
    u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// The first `size` of 16 bytes; the others become zero.
__device__ __forceinline__ void fetch_some(uint4* to, const char* from, int size) {
    u32 address = static_cast<u32>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(size) : "memory");
}

__device__ __forceinline__ void close_batch() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void await_batches() {
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Rows on their way into a warp's ring of rows. Each lane fetches what it alone will read, so that no lane waits for
// another; bytes beyond the end of a share arrive as zeros.
struct Fetcher {
    const long long* shares;
    int share;
    int end;
    const char* source;
    long long left;

    __device__ __forceinline__ void begin_share() {
        if (share < end) {
            source = reinterpret_cast<const char*>(shares[8 * share]);
            left = shares[8 * share + 4];
        }
    }

    __device__ __forceinline__ void next(uint4* slot, int lane) {
        if (share < end) {
            if (left >= ROW_BYTES) {
#pragma unroll
                for (int j = 0; j < 8; ++j) fetch(slot + 32 * j, source + 512 * j + 16 * lane);
            } else {
                for (int j = 0; j < 8; ++j) {
                    int offset = 512 * j + 16 * lane;
                    int size = max(0, min(16, static_cast<int>(left) - offset));
                    fetch_some(slot + 32 * j, size ? source + offset : source, size);
                }
            }
            source += ROW_BYTES;
            left -= ROW_BYTES;
            if (left <= 0) {
                ++share;
                begin_share();
            }
        }
        close_batch();
    }
};

__device__ __forceinline__ void put(char* target, uint4 words, long long left) {
    if (left >= 16) {
        *reinterpret_cast<uint4*>(target) = words;
    } else {
        const u32 each[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
        for (int at = 0; at < 16; ++at)
            if (at < left) target[at] = static_cast<char>(each[at / 4] >> (8 * (at % 4)));
    }
}

// Adds one share's terms to its group. Who brings the last rows writes the digest and leaves zeros for the next launch;
// a share that is a whole group needs nobody else's sums.
__device__ void arrive(u64* sums, u64 x, u64 y, u64 num_rows, u64 all_rows, u64 all_bytes, u64 k0, u64* digest) {
    if (num_rows < all_rows) {
        atomicAdd(sums, x);
        atomicAdd(sums + 1, y);
        __threadfence();
        if (atomicAdd(sums + 2, num_rows) + num_rows < all_rows) return;
        __threadfence();
        x = atomicExch(sums, 0ull);
        y = atomicExch(sums + 1, 0ull);
        atomicExch(sums + 2, 0ull);
    }
    const u64 length = mixed(all_bytes + k0);
    digest[0] = mixed(x + length);
    digest[1] = mixed(y + length);
}

// [address, target, group, number of its first row, bytes, rows of the group, bytes of the group, 0]; the first and the
// fifth are the fetcher's.
struct Share {
    char* target;
    long long group;
    u64 number;
    long long num_bytes;
    u64 all_rows;
    u64 all_bytes;

    __device__ __forceinline__ explicit Share(const long long* line)
        : target(reinterpret_cast<char*>(line[1])), group(line[2]), number(static_cast<u64>(line[3])),
          num_bytes(line[4]), all_rows(static_cast<u64>(line[5])), all_bytes(static_cast<u64>(line[6])) {}
};

template <bool COPY>
__device__ __forceinline__ void fingerprint_shares(const long long* shares, const long long* bounds, const u64* table,
                                                   u64* sums, u64* digests) {
    extern __shared__ __align__(128) uint4 rings[];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const bool upper = lane >= 16;
    const int place = lane % 16;
    uint4* ring = rings + warp * STAGES * ROW_CHUNKS + lane;
    const int program = blockIdx.x * WARPS + warp;
    const int begin = static_cast<int>(bounds[program]);
    const int end = static_cast<int>(bounds[program + 1]);
    if (begin == end) return;

    Fetcher fetcher{shares, begin, end, nullptr, 0};
    fetcher.begin_share();
    for (int slot = 0; slot < STAGES; ++slot) fetcher.next(ring + slot * ROW_CHUNKS, lane);

    u32 a_low[32], a_high[32], b_low[32], b_high[32];
#pragma unroll
    for (int j = 0; j < 32; ++j) {
        int column = 128 * (j / 4) + 4 * lane + j % 4;
        u64 a = table[column];
        u64 b = table[1024 + column];
        a_low[j] = static_cast<u32>(a);
        a_high[j] = static_cast<u32>(a >> 32);
        b_low[j] = static_cast<u32>(b);
        b_high[j] = static_cast<u32>(b >> 32);
    }
    const u64 k0 = table[2048];
    const u64 k1 = table[2049];
    const u64 k2 = table[2050];

    int slot = 0;
    Share next(shares + 8 * begin);
    for (int share = begin; share < end; ++share) {
        const Share now = next;
        if (share + 1 < end) next = Share(shares + 8 * (share + 1));  // small shares would wait for nothing else
        const int num_rows = static_cast<int>((now.num_bytes + ROW_BYTES - 1) / ROW_BYTES);
        u64 total_x = 0, total_y = 0, kept = 0;
#pragma unroll 1
        for (int row = 0; row < num_rows; ++row) {
            await_batches<STAGES - 1>();
            u64 x_low = 0, y_low = 0;
            u32 x_high = 0, y_high = 0;
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                const uint4 chunk = ring[slot * ROW_CHUNKS + 32 * j];
                const u32 words[4] = {chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const u32 turned = __byte_perm(words[i], 0, 0x1032);
                    x_low += static_cast<u64>(words[i]) * a_low[4 * j + i];
                    x_high += words[i] * a_high[4 * j + i];
                    y_low += static_cast<u64>(turned) * b_low[4 * j + i];
                    y_high += turned * b_high[4 * j + i];
                }
                if (COPY) {
                    const long long offset = static_cast<long long>(row) * ROW_BYTES + 512 * j + 16 * lane;
                    put(now.target + offset, chunk, now.num_bytes - offset);
                }
            }
            fetcher.next(ring + slot * ROW_CHUNKS, lane);
            slot = slot + 1 == STAGES ? 0 : slot + 1;

            // The lower half of the warp adds up x, the upper half y.
            const u64 x = x_low + (static_cast<u64>(x_high) << 32);
            const u64 y = y_low + (static_cast<u64>(y_high) << 32);
            u64 sum = (upper ? y : x) + __shfl_xor_sync(ALL, upper ? x : y, 16);
#pragma unroll
            for (int step = 8; step; step /= 2) sum += __shfl_xor_sync(ALL, sum, step);
            if (row % 16 == place) kept = sum;

            // Sixteen rows are mixed at a time, a row in each lane.
            if (row % 16 == 15 || row == num_rows - 1) {
                const u64 other = __shfl_xor_sync(ALL, kept, 16);
                const u64 row_number = now.number + (row - row % 16) + place;
                u64 mixed_y = mixed((upper ? kept : other) + (row_number + 1) * 0x9E3779B97F4A7C15ull + k0);
                u64 mixed_x = mixed((upper ? other : kept) + mixed_y + k1);
                if (place <= row % 16) {
                    total_x += mixed_x;
                    total_y += mixed_y + mixed(mixed_x + k2);
                }
            }
        }
#pragma unroll
        for (int step = 8; step; step /= 2) {
            total_x += __shfl_xor_sync(ALL, total_x, step);
            total_y += __shfl_xor_sync(ALL, total_y, step);
        }
        if (lane == 0)
            arrive(sums + 3 * now.group, total_x, total_y, num_rows, now.all_rows, now.all_bytes, k0,
                   digests + 2 * now.group);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    fingerprint(const long long* shares, const long long* bounds, const u64* table, u64* sums, u64* digests) {
    fingerprint_shares<false>(shares, bounds, table, sums, digests);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    fingerprint_and_copy(const long long* shares, const long long* bounds, const u64* table, u64* sums, u64* digests) {
    fingerprint_shares<true>(shares, bounds, table, sums, digests);
}

template <typename Unit>
__device__ __forceinline__ void copy_units(const Unit* source, Unit* target, long long count) {
    long long at = threadIdx.x;
    for (; at + (UNROLL - 1) * COPY_THREADS < count; at += UNROLL * COPY_THREADS) {
        Unit held[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) held[i] = source[at + i * COPY_THREADS];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) target[at + i * COPY_THREADS] = held[i];
    }
    for (; at < count; at += COPY_THREADS) target[at] = source[at];
}

// Lines of `width` units, steps apart; the first of them is begun at `inside`.
template <typename Unit>
__device__ __forceinline__ void copy_lines(const char* source, char* target, u32 count, u32 inside, u32 width,
                                           long long source_step, long long target_step) {
    u32 at = threadIdx.x;
    for (; at + (UNROLL - 1) * COPY_THREADS < count; at += UNROLL * COPY_THREADS) {
        Unit held[UNROLL];
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const u32 unit = inside + at + i * COPY_THREADS, line = unit / width;
            held[i] = reinterpret_cast<const Unit*>(source + line * source_step)[unit - line * width];
        }
#pragma unroll
        for (int i = 0; i < UNROLL; ++i) {
            const u32 unit = inside + at + i * COPY_THREADS, line = unit / width;
            reinterpret_cast<Unit*>(target + line * target_step)[unit - line * width] = held[i];
        }
    }
    for (; at < count; at += COPY_THREADS) {
        const u32 unit = inside + at, line = unit / width;
        reinterpret_cast<Unit*>(target + line * target_step)[unit - line * width] =
            reinterpret_cast<const Unit*>(source + line * source_step)[unit - line * width];
    }
}

template <typename Unit>
__device__ __forceinline__ void copy_share(const long long* share) {
    const char* source = reinterpret_cast<const char*>(share[0]);
    char* target = reinterpret_cast<char*>(share[1]);
    const long long count = share[2], inside = share[4], width = share[5];
    if (inside + count <= width)
        copy_units(reinterpret_cast<const Unit*>(source) + inside, reinterpret_cast<Unit*>(target) + inside, count);
    else
        copy_lines<Unit>(source, target, static_cast<u32>(count), static_cast<u32>(inside), static_cast<u32>(width),
                         share[6], share[7]);
}

// A share is [source, target, number of units, bytes of a unit, unit of the line that it begins with, units of a line,
// bytes from one line to the next at the source, and at the target]. Addresses and steps are multiples of the unit.
extern "C" __global__ void __launch_bounds__(COPY_THREADS) copy_pieces(const long long* shares, const long long* bounds) {
    const long long end = bounds[blockIdx.x + 1];
    for (long long share = bounds[blockIdx.x]; share < end; ++share) {
        const long long* line = shares + 8 * share;
        if (line[3] == 16)
            copy_share<uint4>(line);
        else if (line[3] == 4)
            copy_share<u32>(line);
        else
            copy_share<unsigned char>(line);
    }
}

// A table of `digest_rows`: a[512], b[512], and for each 16 bytes of a row the b of the odd word that begins before them.
constexpr int ROW_WORDS = 512;

// An odd word is the upper half of one word and the lower half of the next, so each word adds what its halves bring:
// nobody needs his neighbour's.
__device__ __forceinline__ void add_word(u64& a, u64& b, u32 low, u32 high, int word, int num_words, const u64* table) {
    a += (low | static_cast<u64>(high) << 32) * table[word];
    if (word + 1 < num_words) b += high * table[ROW_WORDS + word];
    if (word) b += static_cast<u64>(low * static_cast<u32>(table[ROW_WORDS + word - 1])) << 32;
}

__device__ __forceinline__ u64 word_of(uint4 chunk, bool second) {
    return second ? chunk.z | static_cast<u64>(chunk.w) << 32 : chunk.x | static_cast<u64>(chunk.y) << 32;
}

// A row at a multiple of 16, of a multiple of 16 bytes. All of its loads are on their way at once.
__device__ __forceinline__ void add_chunks(u64& a, u64& b, const uint4* row, int count, int lane, const u64* table) {
    const uint4* factors = reinterpret_cast<const uint4*>(table);
    uint4 held[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int at = lane + 32 * j;
        held[j] = at < count ? row[at] : uint4{0, 0, 0, 0};
    }
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        const int at = lane + 32 * j;
        if (32 * j >= count) break;
        const uint4 chunk = held[j], a_pair = factors[at], b_pair = factors[ROW_WORDS / 2 + at];
        const u32 b_before = static_cast<u32>(table[2 * ROW_WORDS + at]);
        a += word_of(chunk, false) * word_of(a_pair, false) + word_of(chunk, true) * word_of(a_pair, true);
        b += chunk.y * word_of(b_pair, false);
        b += static_cast<u64>(chunk.x * b_before + chunk.z * b_pair.x) << 32;
        if (at + 1 < count) b += chunk.w * word_of(b_pair, true);
    }
}

__device__ __forceinline__ u32 bytes_at(const unsigned char* row, int at, int end) {
    u32 found = 0;
    for (int i = 0; i < 4; ++i)
        if (at + i < end) found |= static_cast<u32>(row[at + i]) << 8 * i;
    return found;
}

// state/row_digests.py, of all rows at once: a warp for each row. A line is [address, bytes of a row, rows, bytes from
// one to the next, number of the first row, rows of a share, 0, 0]; `firsts`: the first share of each line, and all.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    digest_rows(const long long* lines, const long long* firsts, const u64* table, u64* digests, long long num_lines,
                long long num_programs) {
    const int lane = threadIdx.x % 32;
    const long long num_shares = firsts[num_lines];
    for (long long share = blockIdx.x * WARPS + threadIdx.x / 32; share < num_shares; share += num_programs) {
        long long low = 0, high = num_lines;
        while (high - low > 1) {
            const long long middle = (low + high) / 2;
            if (firsts[middle] <= share)
                low = middle;
            else
                high = middle;
        }
        const long long* line = lines + 8 * low;
        const int num_bytes = static_cast<int>(line[1]), num_words = (num_bytes + 7) / 8;
        const long long odd = line[0] | line[1] | line[3];
        const long long begin = (share - firsts[low]) * line[5], end = min(begin + line[5], line[2]);
        for (long long row = begin; row < end; ++row) {
            const char* at = reinterpret_cast<const char*>(line[0] + row * line[3]);
            u64 a = 0, b = 0;
            if (odd % 16 == 0) {
                add_chunks(a, b, reinterpret_cast<const uint4*>(at), num_bytes / 16, lane, table);
            } else if (odd % 4 == 0) {
                const u32* halves = reinterpret_cast<const u32*>(at);
                for (int word = lane; word < num_words; word += 32) {
                    const u32 upper = 8 * word + 4 < num_bytes ? halves[2 * word + 1] : 0;
                    add_word(a, b, halves[2 * word], upper, word, num_words, table);
                }
            } else {
                const unsigned char* bytes = reinterpret_cast<const unsigned char*>(at);
                for (int word = lane; word < num_words; word += 32)
                    add_word(a, b, bytes_at(bytes, 8 * word, num_bytes), bytes_at(bytes, 8 * word + 4, num_bytes), word,
                             num_words, table);
            }
#pragma unroll
            for (int step = 16; step; step /= 2) {
                a += __shfl_xor_sync(ALL, a, step);
                b += __shfl_xor_sync(ALL, b, step);
            }
            if (lane == 0) digests[line[4] + row] = mixed(a + mixed(b + num_bytes * 0x9E3779B97F4A7C15ull));
        }
    }
}
