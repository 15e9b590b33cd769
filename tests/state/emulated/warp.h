// Enough of CUDA for programs.cu to run on the CPU: a thread for each lane of one warp, a barrier at each exchange.
#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

using std::max;
using std::min;

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint4 {
    unsigned x, y, z, w;
};
struct Index {
    int x;
};

static thread_local Index threadIdx, blockIdx;
static uint64_t exchanged[32];
static std::barrier<> lanes(32);
static uint4 rings[WARPS * STAGES * 256];

inline uint64_t __shfl_xor_sync(unsigned, uint64_t value, int mask) {
    exchanged[threadIdx.x] = value;
    lanes.arrive_and_wait();
    uint64_t found = exchanged[threadIdx.x ^ mask];
    lanes.arrive_and_wait();
    return found;
}

inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
    unsigned found = 0;
    for (int at = 0; at < 4; ++at) found |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * at & 7) & 255) << 8 * at;
    return found;
}

template <typename T>
T atomicAdd(T* place, T value) {
    T before = *place;
    *place += value;
    return before;
}

template <typename T>
T atomicExch(T* place, T value) {
    T before = *place;
    *place = value;
    return before;
}

inline void __threadfence() {}

inline void fetch(uint4* to, const char* from) { std::memcpy(to, from, 16); }

inline void fetch_some(uint4* to, const char* from, int size) {
    std::memset(to, 0, 16);
    std::memcpy(to, from, size);
}

inline void close_batch() {}

template <int PENDING>
void await_batches() {}
