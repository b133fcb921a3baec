#include "libs/bench/measurement.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace penstock::bench {
namespace {

std::string quoted(std::string const& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

// A ratio to nothing is no number, and JSON has no word for it.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);  // a count of 10^11 stays whole
  return text;
}

std::string object(std::map<std::string, std::string> const& fields) {
  std::string out = "{";
  for (auto const& [key, value] : fields) out += (out.size() > 1 ? ", " : "") + quoted(key) + ": " + quoted(value);
  return out + "}";
}

std::string object(std::map<std::string, double> const& fields) {
  std::string out = "{";
  for (auto const& [key, value] : fields) out += (out.size() > 1 ? ", " : "") + quoted(key) + ": " + number(value);
  return out + "}";
}

double spread(std::vector<double> const& values) {
  if (values.empty()) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return (*most - *least) / median(values);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

std::string first_value(char const* file, std::string const& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) != 0) continue;
    const auto colon = line.find(':');
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

std::string to_json(measurement const& m) {
  if (!m.verified) throw std::runtime_error(m.id + ": the output was not verified, so this is no result");
  const double value = median(m.values);
  const double baseline = median(m.baseline_values);
  std::ostringstream line;
  line << "{\"id\": " << quoted(m.id) << ", \"params\": " << object(m.params) << ", \"value\": " << number(value)
       << ", \"unit\": " << quoted(m.unit) << ", \"baseline\": " << (m.baseline.empty() ? "null" : quoted(m.baseline))
       << ", \"baseline_value\": " << (m.baseline.empty() ? "null" : number(baseline))
       << ", \"ratio\": " << (m.baseline.empty() ? "null" : number(value / baseline)) << ", \"repeats\": " << m.values.size()
       << ", \"spread\": " << number(spread(m.values)) << ", \"verified\": true, \"bytes\": " << object(m.bytes)
       << ", \"sms\": " << m.sms << ", \"warps\": " << m.warps << ", \"registers\": " << m.registers
       << ", \"details\": " << object(m.details) << ", \"machine\": " << object(m.machine);
  char const* commit = std::getenv("PENSTOCK_COMMIT");
  line << ", \"commit\": " << quoted(commit == nullptr ? "unknown" : commit) << ", \"date\": " << quoted(today()) << "}";
  return line.str();
}

void note_commands(measurement& m, unsigned long long asked, unsigned long long had) {
  if (asked != 0) {
    m.params["commands"] = std::to_string(had);
  } else {
    m.details["commands"] = static_cast<double>(had);
  }
}

void write_line(measurement const& m, std::string const& path) {
  const std::string line = to_json(m);
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  std::ofstream(path, std::ios::app) << line << "\n";
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::map<std::string, std::string> describe_host() {
  char const* name = std::getenv("PENSTOCK_MACHINE");
  return {{"cpu", first_value("/proc/cpuinfo", "model name")},
          {"cores", std::to_string(std::thread::hardware_concurrency())},
          {"memory", first_value("/proc/meminfo", "MemTotal")},
          {"compiler", __VERSION__},
          {"name", name == nullptr ? "" : name}};
}

}  // namespace penstock::bench
