#include "penstock/controller/drive_model.hpp"

#include "penstock/host/error.hpp"

#include <string_view>

namespace penstock {
namespace {

struct named_drive {
  char const* name;
  drive_timing timing;
  double capacity;  ///< bytes
};

// Units: enough for the IOPS limit at that service time, so that the limit decides; the drives do not say how many they have.
// Writes of the p5800x at 512 bytes: Table 5.3 has 1.0 M/s, Fig. 5.6 has 10.6 M/s for ten drives; 1.03 is within 3 % of both.
constexpr named_drive drives[] = {
    {"p5800x", {10'000, 64, 5.1e6, 1.5e6, 1.03e6, 1.5e6}, 1.6e12},
    {"pm1735", {25'000, 64, 1.1e6, 1.6e6, 351e3, 351e3}, 800e9},
    {"980pro", {300'000, 256, 750e3, 750e3, 172e3, 172e3}, 1e12},
    {"gen5", {65'000, 256, 2.9e6, 2.9e6, 600e3, 600e3}, 7.68e12},
    {"none", {}, 0},
};

constexpr std::string_view duplex_suffix = "-duplex";

}  // namespace

std::vector<std::string> drive_preset_names() {
  std::vector<std::string> names;
  for (named_drive const& each : drives) {
    names.emplace_back(each.name);
    if (each.timing.limits_anything()) names.push_back(each.name + std::string(duplex_suffix));
  }
  return names;
}

namespace {

named_drive const& drive_of(std::string const& name) {
  std::string known;
  for (named_drive const& each : drives) {
    if (name == each.name) return each;
    if (each.timing.limits_anything() && name == each.name + std::string(duplex_suffix)) return each;
  }
  for (std::string const& each : drive_preset_names()) known += (known.empty() ? "" : ", ") + each;
  throw_bad_input("model", "drive " + name, "there is no such preset: choose one of " + known);
}

}  // namespace

drive_timing drive_preset(std::string const& name) {
  named_drive const& drive = drive_of(name);
  drive_timing timing = drive.timing;
  timing.duplex = name != drive.name;
  return timing;
}

double drive_capacity(std::string const& name) { return drive_of(name).capacity; }

double link_preset(std::string const& name) {
  if (name == "none") return 0;
  if (name == "gen4x16") return 26.9e9;
  if (name == "gen5x16") return 58e9;
  throw_bad_input("model", "link " + name, "there is no such preset: choose gen4x16, gen5x16 or none");
}

}  // namespace penstock
