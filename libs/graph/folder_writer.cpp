#include "libs/graph/folder_writer.hpp"

#include "libs/graph/file.hpp"
#include "libs/graph/folder_edges.hpp"
#include "penstock/host/error.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace penstock::graph {
namespace {

namespace fs = std::filesystem;

/// ".NAME.tmp-PID-N": hidden. Whoever fills it holds a lock on it, which the kernel drops with the process.
std::string temporary_prefix(fs::path const& target) { return "." + target.filename().string() + ".tmp-"; }

/// An open, locked descriptor of the folder, or -1 where another process has the lock or the file system has no locks.
int try_lock(std::string const& folder) {
  int const descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0 || ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

/// Removes what processes that are gone have left for the same target. Errors do not matter: it is only tidying.
void remove_leftovers(fs::path const& target) {
  std::string const prefix = temporary_prefix(target);
  std::error_code ignored;
  for (fs::directory_iterator at(target.parent_path(), ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (!at->path().filename().string().starts_with(prefix)) continue;
    int const lock = try_lock(at->path().string());
    if (lock < 0) continue;
    std::error_code failed;
    fs::remove_all(at->path(), failed);
    ::close(lock);
  }
}

void sync_folder(std::string const& path) {
  int const descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // not every file system can; the files themselves are synced
  ::close(descriptor);
}

}  // namespace

folder_writer::folder_writer(std::string const& target) {
  static std::atomic<unsigned> serial{0};
  std::error_code error;
  fs::path place = fs::absolute(target, error).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // "folder/"
  target_ = place.string();
  if (fs::exists(fs::symlink_status(place, error))) throw_bad_input("create", target_, "it exists already: name a new folder");
  fs::path const parent = place.parent_path();
  fs::create_directories(parent, error);
  if (error) throw_os_error("create", parent.string(), error.value(), "choose a folder that can be written");
  remove_leftovers(place);
  fs::path const beside = parent / (temporary_prefix(place) + std::to_string(::getpid()) + "-" + std::to_string(serial++));
  fs::create_directory(beside, error);
  if (error) throw_os_error("create", target_, error.value(), "choose a folder that can be written");
  temporary_ = beside.string();
  lock_ = try_lock(temporary_);
}

folder_writer::~folder_writer() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void folder_writer::add_file(std::string const& name, std::string const& bytes) const {
  file out = file::create(temporary_ + "/" + name);
  out.write(0, std::as_bytes(std::span(bytes)));
  out.sync_and_close();
}

void folder_writer::commit() {
  sync_folder(temporary_);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY) return;  // the destructor removes ours
    throw_os_error("create", target_, errno, "check that its folder can be written");
  }
  temporary_.clear();
  sync_folder(fs::path(target_).parent_path().string());
}

namespace {

std::string join_names(std::span<std::string const> names, u64 vertices, std::string const& target) {
  if (names.size() != vertices)
    throw_bad_input("create", target,
                    std::to_string(names.size()) + " names for " + std::to_string(vertices) + " vertices: give one for each");
  std::string text;
  for (std::string const& name : names) {
    if (name.find('\n') != std::string::npos) throw_bad_input("create", target, "a name holds a newline: remove it");
    text += name + '\n';
  }
  return text;
}

[[noreturn]] void refuse_one_way(graph_folder const& graph, std::string const& source, unsigned threads,
                                 progress_meter& meter) {
  throw_bad_input("read", source,
                  "an undirected graph has each edge both ways, but " + one_way_edge(graph, threads, meter) +
                      " is not there the other way round: add it, or take each edge both ways (undirected; for arrays "
                      "symmetrise)");
}

}  // namespace

csr_counts write_graph(edge_source const& source, std::string const& target, graph_origin const& origin,
                       build_options const& options, progress_meter& meter, u64 progress_from) {
  std::string const names = origin.names.empty() ? std::string() : join_names(origin.names, source.vertices(), target);
  build_options all = options;
  all.check_both_ways = !origin.directed && !options.symmetrise;
  if (all.target.empty()) all.target = target;
  folder_writer folder(target);
  csr_counts const counts = build_csr(source, folder.path(), all, meter, progress_from);
  if (!origin.names.empty()) folder.add_file("names.txt", names);
  graph_facts const facts{
      counts.vertices, counts.edges, origin.directed, origin.source, origin.names.empty() ? "" : "names.txt", origin.reading};
  folder.add_file("graph.json", to_json(facts));
  if (!counts.both_ways) refuse_one_way(graph_folder::open(folder.path()), origin.source, options.threads, meter);
  folder.commit();
  return counts;
}

}  // namespace penstock::graph
