#include "penstock/host/npy.hpp"

#include "penstock/host/error.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace penstock {
namespace {

constexpr std::string_view magic("\x93NUMPY", 6);
constexpr u64 most_length_end = 12;  // where a header begins, at the latest
constexpr u64 longest_header = npy_longest_start - most_length_end;

/// Reads the Python dict literal of a header: exactly the keys descr, fortran_order and shape, in any order.
class header_parser {
 public:
  header_parser(std::string_view text, std::string const& name) : text_(text), name_(name) {}

  npy_header parse() {
    npy_header header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view const key = quoted();
      expect(':');
      if (key == "descr")
        once(descr), parse_descr(header);
      else if (key == "fortran_order")
        once(order), header.fortran = boolean();
      else if (key == "shape")
        once(shape), parse_shape(header);
      else
        fail("key '" + std::string(key) + "' is none of descr, fortran_order, shape");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the closing brace");
    if (!descr || !order || !shape) fail("one of descr, fortran_order, shape is missing");
    return header;
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw_bad_input("open", name_, "malformed .npy header: " + what + ": write the file again with numpy.save");
  }
  void once(bool& seen) {
    if (seen) fail("a key stands twice");
    seen = true;
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail("no '" + std::string(1, c) + "' at byte " + std::to_string(at_));
  }
  std::string_view quoted() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("no string at byte " + std::to_string(at_));
    std::size_t const end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a string without end");
    std::string_view const inside = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inside;
  }
  bool boolean() {
    skip_space();
    for (bool value : {true, false}) {
      std::string_view const word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("fortran_order is neither True nor False");
  }
  u64 number(std::string_view digits) const {
    u64 value = 0;
    auto const [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("'" + std::string(digits) + "' is no size");
    return value;
  }
  void parse_descr(npy_header& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      throw_bad_input("open", name_, "a structured dtype: save one plain array per file");
    std::string_view const descr = quoted();
    if (descr.size() < 2) fail("dtype '" + std::string(descr) + "'");
    header.kind = descr[1];
    bool const is_number = std::string_view("bcfiu").find(header.kind) != std::string_view::npos;
    u64 const bytes = is_number ? number(descr.substr(2)) : 0;  // of others more may stand there, as in <M8[ns]
    bool const sizes_fit = (header.kind == 'b' && bytes == 1) || (header.kind == 'c' && (bytes == 8 || bytes == 16)) ||
                           (header.kind == 'f' && (bytes == 2 || bytes == 4 || bytes == 8)) ||
                           ((header.kind == 'i' || header.kind == 'u') && bytes <= 8 && std::has_single_bit(bytes));
    if (!sizes_fit)
      throw_bad_input("open", name_,
                      "dtype '" + std::string(descr) + "' is no bool, integer, float or complex: convert it first");
    header.item_bytes = static_cast<u32>(bytes);
    char const order = descr[0];
    if (order == '>')
      throw_bad_input("open", name_, "big-endian dtype '" + std::string(descr) + "': save it as little-endian ('<')");
    if (order != '<' && !(order == '|' && bytes == 1)) fail("dtype '" + std::string(descr) + "'");
  }
  void parse_shape(npy_header& header) {
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::size_t const end = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
      header.shape.push_back(number(text_.substr(at_, end - at_)));
      at_ = end;
      if (header.shape.size() > 32) fail("more than 32 dimensions");
      if (!accept(',')) {
        if (header.shape.size() == 1) fail("a shape of one dimension needs its comma");
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  std::string const& name_;
  std::size_t at_ = 0;
};

u64 little_endian(std::span<std::byte const> bytes) {
  u64 value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= static_cast<u64>(bytes[i]) << (8 * i);
  return value;
}

void check_size(npy_header const& header, u64 file_bytes, std::string const& name) {
  u64 bytes = header.item_bytes;
  // A dimension of 0 makes the product 0, but the others must still multiply without overflow for NumPy to open the file.
  for (u64 extent : header.shape)
    if (extent != 0 && __builtin_mul_overflow(bytes, extent, &bytes))
      throw_bad_input("open", name, header.describe() + ": more bytes than can be addressed: the header is damaged");
  u64 const data = header.data_bytes();
  u64 const expected = header.data_offset + data;
  if (expected < data || expected != file_bytes)
    throw_bad_input("open", name,
                    header.describe() + " takes " + std::to_string(expected) + " bytes with its header, the file has " +
                        std::to_string(file_bytes) + ": it is " +
                        (file_bytes < expected ? "truncated" : "longer than its header says") + ", write it again");
}

struct header_extent {
  u64 begin;  ///< first byte of the dict
  u64 end;    ///< first byte of the data
};

/// REQUIRES: bytes.size() >= 12 or all of the file.
header_extent find_header(std::span<std::byte const> bytes, std::string const& name) {
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    throw_bad_input("open", name, "does not start with the magic bytes of a .npy file: save the array with numpy.save");
  unsigned const major = static_cast<unsigned>(bytes[6]), minor = static_cast<unsigned>(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw_bad_input("open", name,
                    ".npy version " + std::to_string(major) + "." + std::to_string(minor) +
                        " is not 1.0, 2.0 or 3.0: save it again with numpy.save");
  u64 const length_bytes = major == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) throw_bad_input("open", name, "truncated: the file ends inside its .npy header");
  u64 const begin = 8 + length_bytes;
  u64 const length = little_endian(bytes.subspan(8, length_bytes));
  if (length > longest_header)
    throw_bad_input("open", name, "a .npy header of " + std::to_string(length) + " bytes: the file is damaged");
  return {begin, begin + length};
}

struct open_file {
  explicit open_file(std::string const& path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor < 0) throw_os_error("open", path, errno, "check the path and its permissions");
  }
  open_file(open_file const&) = delete;
  open_file& operator=(open_file const&) = delete;
  ~open_file() { ::close(descriptor); }

  int descriptor;
};

}  // namespace

u64 npy_header::count() const {
  u64 count = 1;
  for (u64 extent : shape) count *= extent;
  return count;
}

std::string npy_header::describe() const {
  std::string text = kind == 'b' ? "bool" : kind == 'i' ? "int" : kind == 'u' ? "uint" : kind == 'f' ? "float" : "complex";
  if (kind != 'b') text += std::to_string(item_bytes * 8);
  text += ", shape (";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

npy_header parse_npy_header(std::span<std::byte const> bytes, u64 file_bytes, std::string const& name) {
  auto const [begin, end] = find_header(bytes, name);
  if (bytes.size() < end)
    throw_bad_input(
        "open", name,
        "truncated: its .npy header ends at byte " + std::to_string(end) + ", the file has " + std::to_string(file_bytes));
  std::string_view const text(reinterpret_cast<char const*>(bytes.data()) + begin, end - begin);
  npy_header header = header_parser(text, name).parse();
  header.data_offset = end;
  check_size(header, file_bytes, name);
  return header;
}

npy_header read_npy_header(std::string const& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) != 0) throw_os_error("open", path, errno, "check the path and its permissions");
  // Before opening, which would wait for the writer of a FIFO.
  if (!S_ISREG(about.st_mode)) throw_bad_input("open", path, "is not a regular file: name a .npy file");
  open_file const file(path);
  if (::fstat(file.descriptor, &about) != 0) throw_os_error("open", path, errno, "check the file system");
  std::vector<std::byte> bytes(npy_longest_start);
  u64 filled = 0;
  while (filled < bytes.size()) {
    ssize_t const got = ::pread(file.descriptor, bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_os_error("read", path, errno, "check the disk");
    if (got == 0) break;
    filled += static_cast<u64>(got);
  }
  return parse_npy_header(std::span(bytes).first(filled), static_cast<u64>(about.st_size), path);
}

std::string make_npy_header(char kind, u32 item_bytes, std::vector<u64> const& shape, u64 data_offset) {
  std::string dict = "{'descr': '";
  dict += item_bytes == 1 ? '|' : '<';
  dict += kind + std::to_string(item_bytes) + "', 'fortran_order': False, 'shape': (";
  for (u64 extent : shape) dict += std::to_string(extent) + ", ";
  if (shape.size() > 1) dict.resize(dict.size() - 2);
  if (shape.size() == 1) dict.pop_back();
  dict += "), }";
  u64 const length = data_offset - 10;
  if (data_offset % 64 != 0 || data_offset > 8192 || data_offset < 64 || dict.size() + 1 > length)
    throw std::logic_error("make_npy_header: data offset " + std::to_string(data_offset) + " does not suit");
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  header += dict;
  header.append(data_offset - 1 - header.size(), ' ');
  return header + '\n';
}

}  // namespace penstock
