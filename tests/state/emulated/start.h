// What stands behind the programs: one block after the other, each one warp.
extern "C" void start(int program, int blocks, const int64_t* arguments) {
    auto at = [=](int index) { return reinterpret_cast<long long*>(arguments[index]); };
    auto table = [=](int index) { return reinterpret_cast<u64*>(arguments[index]); };
    for (int block = 0; block < blocks; ++block) {
        std::vector<std::thread> warp;
        for (int lane = 0; lane < 32; ++lane)
            warp.emplace_back([=] {
                threadIdx.x = lane;
                blockIdx.x = block;
                if (program == 2)
                    copy_pieces(at(0), at(1));
                else if (program == 3)
                    digest_rows(at(0), at(1), table(2), table(3), arguments[4], arguments[5]);
                else
                    (program ? fingerprint_and_copy : fingerprint)(at(0), at(1), table(2), table(3), table(4));
            });
        for (auto& thread : warp) thread.join();
    }
}
