// Searches by lone threads and emulated warps.
#include "device/file_search_fixture.hpp"
#include "support/run_everywhere.hpp"

namespace penstock::test {
namespace {

struct checked_search : file_search_body {
  file_search_fixture* fixture;

  explicit checked_search(file_search_fixture* f) : file_search_body(f->body()), fixture(f) {}
  void prepare(run_shape shape) { fixture->prepare(shape); }
  void verify(check_report& report, run_shape) const { fixture->verify(report); }
};

class file_search : public testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(file_search, finds_what_a_plain_loop_does) {
  const auto on = open_executor("cpu");
  file_search_fixture fixture(*on, 256, std::get<0>(GetParam()), std::get<1>(GetParam()));
  run_everywhere(checked_search(&fixture), for_waiting_threads);
}

INSTANTIATE_TEST_SUITE_P(, file_search,
                         testing::Combine(testing::Values("a", "ab", "bxa", "aaaaaaaaaaaaaaaaaaaaaaab", std::string(255, 'a')),
                                          testing::Bool()));

TEST(file_search_words, bytes_of_a_word_that_are_equal) {
  for (u32 round = 0; round < 100000; ++round) {
    u64 word = random_word(1, 2, round);
    const u8 byte = static_cast<u8>(random_word(3, 4, round) % 3 * 127);
    for (u32 k = 0; k < 8; ++k) {
      if (random_word(5, k, round) % 2 == 0)
        word = (word & ~(0xffull << 8 * k)) | (byte + random_word(6, k, round) % 2) << 8 * k;
    }
    u32 expected = 0;
    for (u32 k = 0; k < 8; ++k) expected |= (static_cast<u8>(word >> 8 * k) == byte ? 1u : 0u) << k;
    ASSERT_EQ(expected, files::equal_bytes(word, byte)) << word;
  }
}

}  // namespace
}  // namespace penstock::test
