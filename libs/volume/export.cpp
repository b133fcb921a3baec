#include "libs/volume/import.hpp"

#include "libs/drive/host_file.hpp"
#include "libs/graph/folder_writer.hpp"
#include "libs/volume/checksums.hpp"
#include "libs/volume/reporter.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <filesystem>

namespace penstock::volumes {
namespace {

void export_file(volume& from, stored_file const& file, std::string const& path, bool replace, reporter& report) {
  drive::output_file to(path, replace);
  checked_reader reader(from, file);
  const u64 file_end = file.file_begin + file.file_bytes;
  for (u64 begin = file.begin; begin < file.sums_begin;) {
    const u64 end = window_end(from.shape(), begin, file.sums_begin);
    const std::span<std::byte const> window = reader.read(begin, end);
    const u64 first = std::clamp(file.file_begin, begin, end), last = std::clamp(file_end, begin, end);
    to.write(window.data() + (first - begin), last - first, [&] { report.now(); });
    report.add(last - first);
    begin = end;
  }
  to.finish();
}

}  // namespace

moved export_entry(volume& from, std::string const& name, std::string const& path, bool replace, progress_fn const& progress) {
  const u64 begun = now_ns();
  const std::vector<stored_file> files = from.files_of(name);
  moved done{files.size()};
  for (stored_file const& each : files) done.bytes += each.file_bytes;
  reporter report(progress, "exporting", done.bytes);
  if (!files.front().of_folder) {
    export_file(from, files.front(), path, replace, report);
  } else {
    graph::folder_writer folder(path);
    for (stored_file const& each : files) {
      const std::filesystem::path target = folder.path() + each.name.substr(name.size());
      std::error_code problem;
      std::filesystem::create_directories(target.parent_path(), problem);
      if (problem) throw_os_error("export", target.string(), problem.value(), "name a folder that can be written");
      export_file(from, each, target.string(), false, report);
    }
    folder.commit();
  }
  report.now();
  done.seconds = static_cast<double>(now_ns() - begun) * 1e-9;
  return done;
}

}  // namespace penstock::volumes
