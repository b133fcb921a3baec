#include "penstock/controller/software_controller.hpp"

#include "pread_engine.hpp"
#include "software_queue.hpp"
#include "uring_engine.hpp"

#include "penstock/host/error.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <thread>

namespace penstock {
namespace {

using namespace controllers;

constexpr u64 largest_transfer = u64{1} << 20;

bool choose_io_uring(io_engine wanted) {
  if (wanted == io_engine::pread) return false;
  std::string reason;
  const bool usable = io_uring_usable(&reason);
  if (!usable && wanted == io_engine::io_uring) {
    throw error(error_kind::world, "start software controller with io_uring: " + reason + ": ask for io_engine::pread", ENOSYS);
  }
  return usable;
}

}  // namespace

software_options software_options_for(executor const& on, io_engine engine, u32 threads) {
  constexpr u32 left_over = 2;
  software_options software;
  software.engine = engine;
  if (on.kind() == executor_kind::cpu) return software;
  const u32 cores = std::max(1u, std::thread::hardware_concurrency());
  software.threads = threads != 0 ? threads : std::max(1u, cores - std::min(cores - 1, left_over));
  return software;
}

controller_limits limits_of(software_options const& options) {
  controller_limits limits{options.max_queues, options.max_queue_entries, largest_transfer};
  limits.is_polled = options.threads == 0;
  return limits;
}

struct software_controller::state {
  explicit state(software_options const& wanted)
      : options(wanted), use_io_uring(choose_io_uring(wanted.engine)), media(std::make_shared<software_media>()),
        counts(u64{wanted.max_queues} + 1), table(wanted.max_queues, wanted.threads) {
    media->limits = limits_of(wanted);
  }

  bool has_files() const {
    for (auto const& space : media->spaces) {
      if (space->memory() == nullptr) return true;
    }
    return false;
  }

  bool has_maps() const {
    for (auto const& space : media->spaces) {
      if (space->map() != nullptr) return true;
    }
    return false;
  }

  u32 add(std::unique_ptr<storage_namespace> space) {
    media->shapes.push_back(space->shape());
    media->spaces.push_back(std::move(space));
    return static_cast<u32>(media->spaces.size());
  }

  std::unique_ptr<transfer_engine> make_engine(queue_rings const& rings) {
    if (!has_files() || rings.id == 0) return nullptr;
    std::vector<int> files;
    for (auto const& space : media->spaces) {
      files.push_back(space->file());
      files.push_back(space->tail_file());
    }
    if (use_io_uring) {
      int code = 0;
      auto engine = create_uring_engine({files, rings.sq_entries, table.has_threads(), &media->buffers}, code);
      if (engine != nullptr) return engine;
      if (options.engine == io_engine::io_uring) {
        throw_os_error("start io_uring for", "queue " + std::to_string(rings.id), code, "use fewer queues or io_engine::pread");
      }
    }
    const std::lock_guard lock(pool_mutex);
    if (pool == nullptr) pool = std::make_shared<pread_pool>(options.pool_threads);
    return std::make_unique<pread_engine>(pool, std::move(files));
  }

  software_options options;
  bool use_io_uring;
  std::shared_ptr<software_media> media;
  std::mutex pool_mutex;
  std::shared_ptr<pread_pool> pool;  ///< started when the first queue needs it
  std::vector<software_queue_counts> counts;
  queue_table table;  ///< last: its threads use all of the above
};

software_controller::software_controller(software_options const& options) {
  if (options.max_queues == 0 || options.max_queues > 0xffff || options.max_queue_entries < 2) {
    throw_bad_input("start", "software controller",
                    "its limits allow no queue: ask for 1 to 65535 queues of 2 entries or more");
  }
  state_ = std::make_unique<state>(options);
}

software_controller::~software_controller() = default;

u32 software_controller::add_namespace(file_namespace const& file) {
  return state_->add(storage_namespace::open_file(file, state_->options.copy_resident, largest_transfer));
}

u32 software_controller::add_namespace(std::span<std::byte> memory, u32 block_bytes) {
  return state_->add(storage_namespace::over_memory(memory, block_bytes, largest_transfer));
}

u32 software_controller::add_folder(file_folder const& folder) {
  return state_->add(storage_namespace::over_folder(folder.space()));
}

void software_controller::move_memory(u32 namespace_id, std::byte* to) {
  state_->media->spaces.at(namespace_id - 1)->move_memory(to);
}

void software_controller::give_up_writing() {
  for (auto const& space : state_->media->spaces) space->give_up_writing();
}

void software_controller::attach(queue_rings const& rings) {
  check_rings(rings, state_->media->limits);
  state_->table.attach(
      rings.id, std::make_shared<software_queue>(rings, state_->media, state_->make_engine(rings), state_->counts[rings.id]));
}

void software_controller::detach(u16 queue) { state_->table.detach(queue); }

void software_controller::poll(u16 queue) { state_->table.poll(queue); }

void software_controller::add_buffer(void* memory, u64 bytes) { state_->media->buffers.add(memory, bytes); }

controller_limits software_controller::limits() const { return state_->media->limits; }

std::string software_controller::engine() const {
  if (!state_->has_files()) return "memory";
  const std::string calls = state_->use_io_uring ? "io_uring" : "pread";
  return state_->has_maps() ? "mapping, " + calls : calls;
}

software_counts software_controller::counts() const {
  software_counts sum;
  for (software_queue_counts& each : state_->counts) {
    sum.commands += device_ref<u64>(each.commands).load(relaxed);
    sum.copied += device_ref<u64>(each.copied).load(relaxed);
    sum.handed_on += device_ref<u64>(each.handed_on).load(relaxed);
    sum.refused_doorbells += device_ref<u64>(each.refused_doorbells).load(relaxed);
  }
  return sum;
}

}  // namespace penstock
