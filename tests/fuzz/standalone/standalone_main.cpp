// Runs a fuzz target without libFuzzer, so that g++ and its sanitizers can be used:
//     fuzz_x ITERATIONS SEED CORPUS_FOLDER
// Each input of the folder is run as it is; then every iteration mutates one of them at random. Same arguments, same inputs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace {

using input = std::vector<std::uint8_t>;

void mutate(input& bytes, std::vector<input> const& corpus, std::mt19937_64& random) {
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  auto const at = [&] { return bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)); };
  static constexpr char interesting[] = "0123456789 -.eE+\n\t#%,:(){}[]'\"<>|truefalse\x00\x01\x7f\x80\xff";
  std::size_t const kind = bytes.empty() ? 2 : below(7);
  if (kind == 0) {
    bytes[below(bytes.size())] ^= static_cast<std::uint8_t>(1u << below(8));
  } else if (kind == 1) {
    bytes[below(bytes.size())] = static_cast<std::uint8_t>(interesting[below(sizeof interesting - 1)]);
  } else if (kind == 2) {
    bytes.insert(at(), static_cast<std::uint8_t>(interesting[below(sizeof interesting - 1)]));
  } else if (kind == 3) {
    auto first = at(), last = at();
    if (last < first) std::swap(first, last);
    bytes.erase(first, last - first > 16 ? first + static_cast<std::ptrdiff_t>(below(16)) : last);
  } else if (kind == 4) {  // an extreme number over 4 or 8 bytes
    std::uint64_t const word = below(2) != 0 ? ~std::uint64_t{0} >> below(64) : std::uint64_t{1} << below(64);
    std::size_t const begin = below(bytes.size());
    for (std::size_t i = 0; i < (below(2) + 1) * 4 && begin + i < bytes.size(); ++i)
      bytes[begin + i] = static_cast<std::uint8_t>(word >> 8 * i);
  } else if (kind == 5) {
    input const& other = corpus[below(corpus.size())];
    std::size_t const begin = below(other.size() + 1), length = below(other.size() - begin + 1);
    auto const from = other.begin() + static_cast<std::ptrdiff_t>(begin);
    bytes.insert(at(), from, from + static_cast<std::ptrdiff_t>(length));
  } else {
    bytes.resize(below(bytes.size()) + 1);
  }
  if (bytes.size() > 8192) bytes.resize(8192);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: %s ITERATIONS SEED CORPUS_FOLDER\n", argv[0]), 2;
  std::set<std::filesystem::path> paths;
  for (auto const& entry : std::filesystem::directory_iterator(argv[3])) paths.insert(entry.path());
  std::vector<input> corpus{{}};
  for (auto const& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  for (input const& bytes : corpus) LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  std::mt19937_64 random(std::strtoull(argv[2], nullptr, 10));
  std::uint64_t const iterations = std::strtoull(argv[1], nullptr, 10);
  for (std::uint64_t i = 0; i < iterations; ++i) {
    input bytes = corpus[random() % corpus.size()];
    for (std::uint64_t n = 1 + random() % 4; n != 0; --n) mutate(bytes, corpus, random);
    // A copy of exactly this size, so that the address sanitizer sees a read past the end.
    input const exact(bytes);
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
  }
  std::printf("%llu inputs from %zu seeds\n", static_cast<unsigned long long>(iterations), corpus.size());
}
