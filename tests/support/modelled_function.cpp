#include "support/modelled_function.hpp"

#include "penstock/core/atomic.hpp"
#include "penstock/host/error.hpp"

#include "src/controller/pieces.hpp"
#include "src/controller/prp_reader.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace penstock::test_support {
namespace {

constexpr u64 arena_bytes = u64{32} << 20;
constexpr u32 ready = nvme::controller_status::ready, fatal = nvme::controller_status::fatal;

driver_step step_of(nvme::submission_entry const& command) {
  using enum nvme::admin_opcode;
  switch (static_cast<nvme::admin_opcode>(command.opcode)) {
    case identify:
      switch (static_cast<nvme::identify_structure>(command.dword10 & 0xffu)) {
        case nvme::identify_structure::controller: return driver_step::identify_controller;
        case nvme::identify_structure::active_namespaces: return driver_step::list_namespaces;
        default: return driver_step::other;
      }
    case set_features:
      return (command.dword10 & 0xffu) == nvme::feature::number_of_queues ? driver_step::ask_for_queues
                                                                          : driver_step::report_events;
    case asynchronous_event_request: return driver_step::request_event;
    case create_completion_queue: return driver_step::create_completion_queue;
    case create_submission_queue: return driver_step::create_submission_queue;
    case delete_submission_queue: return driver_step::delete_submission_queue;
    case delete_completion_queue: return driver_step::delete_completion_queue;
    case get_log_page: return driver_step::read_log;
    case abort: return driver_step::abort;
    default: return driver_step::other;
  }
}

model_options engine_of(modelled_function_options const& options) {
  model_options engine = options.engine;
  engine.max_queues = options.grants;
  engine.transfer_bytes = nvme::page_bytes << options.max_transfer;
  return engine;
}

}  // namespace

modelled_function::modelled_function(std::span<std::byte> media, modelled_function_options const& options)
    : options_(options), memory_(arena_bytes + nvme::page_bytes),
      arena_({std::span(reinterpret_cast<std::byte*>(round_up(reinterpret_cast<u64>(memory_.data()), nvme::page_bytes)),
                        arena_bytes)},
             "the modelled function"),
      engine_(engine_of(options)) {
  engine_.add_namespace(media);
  shapes_.push_back({media.size(), 512, false});
}

modelled_function::~modelled_function() { stop(); }

void modelled_function::plan(driver_step step, trouble what, u32 times) {
  const std::lock_guard lock(mutex_);
  plans_[step] = {what, times};
}

void modelled_function::make_peace() {
  const std::lock_guard lock(mutex_);
  plans_.clear();
  gone = never_ready = never_shut_down = never_stops = fails_to_start = reset_does_not_help = false;
}

std::vector<std::string> modelled_function::complaints() const {
  const std::lock_guard lock(mutex_);
  return complaints_;
}

std::vector<u8> modelled_function::logs_read() const {
  const std::lock_guard lock(mutex_);
  return logs_read_;
}

u32 modelled_function::queues_alive() const {
  const std::lock_guard lock(mutex_);
  return static_cast<u32>(submission_queues_.size());
}

trouble modelled_function::take_trouble(driver_step step) {
  const auto at = plans_.find(step);
  if (at == plans_.end() || at->second.times == 0) return trouble::none;
  --at->second.times;
  return at->second.what;
}

// Registers
// ---------------------------------------------------------------------------------------------------------------------

u32 modelled_function::read(u64 offset) {
  const std::lock_guard lock(mutex_);
  if (gone) return nvme::all_ones;
  switch (offset) {
    case nvme::at::capabilities: return static_cast<u32>(options_.capabilities);
    case nvme::at::capabilities + 4: return static_cast<u32>(options_.capabilities >> 32);
    case nvme::at::version: return 1u << 16 | 4u << 8;
    default: return offset < 0x40 ? registers_[offset / 4] : 0;
  }
}

void modelled_function::write(u64 offset, u32 value) {
  if (offset == nvme::at::configuration && (value & nvme::configuration::enable) == 0 && on_disable) {
    std::exchange(on_disable, nullptr)();
  }
  const std::lock_guard lock(mutex_);
  if (gone) return;
  if (offset >= nvme::at::doorbells) {
    const u64 stride = u64{4} << (options_.capabilities >> 32 & 0xfu);
    if ((offset - nvme::at::doorbells) % stride != 0) return complain("a write between the doorbells");
    return ring(static_cast<u32>((offset - nvme::at::doorbells) / stride), value);
  }
  if (offset == nvme::at::configuration) return configure(value);
  if ((registers_[nvme::at::configuration / 4] & nvme::configuration::enable) != 0) {
    complain("register " + std::to_string(offset) + " was written while enabled");
  }
  if (offset < 0x40) registers_[offset / 4] = value;
}

void modelled_function::configure(u32 value) {
  u32& now = registers_[nvme::at::configuration / 4];
  const bool was = (now & nvme::configuration::enable) != 0, is = (value & nvme::configuration::enable) != 0;
  now = value;
  if (!was && is) start();
  if (was && !is) stop();
  if ((value & nvme::configuration::shutdown_mask) != 0 && is && !never_shut_down) {
    registers_[nvme::at::status / 4] |= nvme::controller_status::shutdown_complete;
    shut_down_ = true;
  }
}

void modelled_function::start() {
  u32& status = registers_[nvme::at::status / 4];
  status = 0;
  shut_down_ = false;
  if (fails_to_start) fatal_ = true;
  if (fatal_) status = fatal;
  if (fatal_ || never_ready) return;
  const u64 sq = static_cast<u64>(registers_[11]) << 32 | registers_[10],
            cq = static_cast<u64>(registers_[13]) << 32 | registers_[12];
  const u32 entries = registers_[nvme::at::admin_entries / 4];
  if (!arena_.holds(reinterpret_cast<void*>(sq), 64) || !arena_.holds(reinterpret_cast<void*>(cq), 16)) {
    complain("admin rings where the device does not reach");
    status = fatal;
    return;
  }
  admin_ = std::make_unique<controllers::ring_server>(
      queue_rings{0, (entries & 0xfffu) + 1, (entries >> 16 & 0xfffu) + 1, reinterpret_cast<nvme::submission_entry*>(sq),
                  reinterpret_cast<nvme::completion_entry*>(cq), &doorbells_[0], &doorbells_[1]});
  status = ready;
}

void modelled_function::drop_ready() {
  const std::lock_guard lock(mutex_);
  registers_[nvme::at::status / 4] &= ~ready;
}

void modelled_function::stop() {
  const std::lock_guard lock(mutex_);
  for (auto const& [id, entries] : submission_queues_) engine_.detach(id);
  submission_queues_.clear();
  completion_queues_.clear();
  event_requests_.clear();
  admin_.reset();
  doorbells_.fill(0);
  fatal_ = false;
  if (!never_stops) registers_[nvme::at::status / 4] = 0;
}

void modelled_function::reset() {
  const std::lock_guard lock(mutex_);
  ++function_resets;
  if (gone) throw_os_error("reset", name(), ENODEV, "it is gone");
  if (reset_does_not_help) throw_os_error("reset", name(), EIO, "the function does not come back");
  never_stops = false;
  registers_ = {};
  stop();
}

void modelled_function::ring(u32 index, u32 value) {
  const auto id = static_cast<u16>(index / 2);
  const bool completion = index % 2 != 0;
  if (admin_ == nullptr) return complain("a doorbell was rung while disabled");
  const bool known = id == 0 || (completion ? completion_queues_.contains(id) : submission_queues_.contains(id));
  if (!known || index >= doorbells_.size())
    return complain("the doorbell of queue " + std::to_string(id) + ", which is not there");
  system_ref<u32>(doorbells_[index]).store(value, release);
  if (id == 0) return serve_admin();
  engine_.poll(id);
}

// Admin commands
// ----------------------------------------------------------------------------------------------------------------

void modelled_function::serve_admin() {
  admin_->drain();
  nvme::submission_entry command;
  while (!fatal_ && !gone && admin_->fetch(command)) answer(command);
}

void modelled_function::answer(nvme::submission_entry const& command) {
  const driver_step step = step_of(command);
  const trouble what = take_trouble(step);
  switch (what) {
    case trouble::drop: return;
    case trouble::fatal:
      fatal_ = true;
      registers_[nvme::at::status / 4] |= fatal;
      return;
    case trouble::vanish: gone = true; return;
    case trouble::refuse: return admin_->complete(command.command_id, options_.refusal);
    default: break;
  }
  if (step == driver_step::request_event && what == trouble::none) return event_requests_.push_back(command.command_id);
  const auto [status, result] = execute(command, step);
  const u16 id = what == trouble::wrong_identifier ? static_cast<u16>(command.command_id ^ 0x4000u) : command.command_id;
  admin_->complete(id, status, result);
  if (what == trouble::duplicate) admin_->complete(id, status, result);
}

std::pair<u16, u32> modelled_function::execute(nvme::submission_entry const& command, driver_step step) {
  using namespace controllers;
  switch (step) {
    case driver_step::ask_for_queues: return {nvme::code::success, (options_.grants - 1) << 16 | (options_.grants - 1)};
    case driver_step::create_completion_queue:
    case driver_step::create_submission_queue: return {create_queue(command), 0};
    case driver_step::delete_submission_queue:
    case driver_step::delete_completion_queue: return {delete_queue(command), 0};
    case driver_step::report_events: events_asked_ = command.dword11; return {nvme::code::success, 0};
    case driver_step::abort: {
      const bool ended =
          engine_.abort(static_cast<u16>(command.dword10), static_cast<u16>(command.dword10 >> 16), one_second_ns);
      return {nvme::code::success, ended ? 0 : 1};
    }
    case driver_step::read_log: {
      pieces target;
      const nvme::health_log log{.temperature = {0x2c, 0x01}};
      const u16 status = read_prps(command, sizeof log, target);
      if (status == nvme::code::success) copy_to_pieces(target, &log, sizeof log, sizeof log);
      logs_read_.push_back(static_cast<u8>(command.dword10));
      return {status, 0};
    }
    default:
      if (command.opcode != static_cast<u8>(nvme::admin_opcode::identify)) return {nvme::code::invalid_opcode, 0};
      return {identify(command), 0};
  }
}

/// As the library's own controllers answer, but for what the options say. The driver's own pages are whole.
u16 modelled_function::identify(nvme::submission_entry const& command) {
  const controller_limits limits{options_.grants, 256, nvme::page_bytes << options_.max_transfer};
  auto* const page = reinterpret_cast<void*>(command.prp1);
  const auto what = static_cast<nvme::identify_structure>(command.dword10 & 0xffu);
  if (what == nvme::identify_structure::command_set_limits && options_.limits.has_value()) {
    std::memcpy(page, &*options_.limits, sizeof *options_.limits);
    return nvme::code::success;
  }
  if (what == nvme::identify_structure::namespace_descriptors && options_.version >= 0x10300) {
    auto& list = *new (page) nvme::namespace_descriptors;
    list.bytes[0] = 3, list.bytes[1] = 16;  // a UUID
    list.bytes[20] = nvme::namespace_descriptors::command_set, list.bytes[21] = 1, list.bytes[24] = options_.command_set;
    return nvme::code::success;
  }
  if (what == nvme::identify_structure::independent_namespace && options_.version >= 0x20000) {
    new (page) nvme::independent_namespace{.features = 0x10, .state = options_.namespace_state};
    return nvme::code::success;
  }
  if (what == nvme::identify_structure::active_namespaces && !options_.namespaces.empty()) {
    std::memset(page, 0, nvme::page_bytes);
    auto* next = static_cast<u32*>(page);
    u32* const end = next + nvme::page_bytes / sizeof(u32);
    for (const u32 id : options_.namespaces) {
      if ((id > command.namespace_id || command.namespace_id == 0) && next != end) *next++ = id;
    }
    return nvme::code::success;
  }
  const u16 status = controllers::answer_identify(command, shapes_, limits, "Modelled function");
  if (what == nvme::identify_structure::name_space && status == nvme::code::success && options_.format) {
    options_.format(*static_cast<nvme::identify_namespace*>(page));
  }
  if (what == nvme::identify_structure::controller && status == nvme::code::success) {
    auto& about = *static_cast<nvme::identify_controller*>(page);
    about.optional_commands = options_.optional_commands;
    about.admin_commands = options_.admin_commands;
    about.optional_events = options_.optional_events;
    about.submission_entry_size = options_.entry_sizes;
    about.version = options_.version;
    about.type = options_.type;
    if (another_drive) about.serial_number[0] = 'X';
    if (!options_.namespaces.empty()) about.namespaces = 65536;
  }
  return status;
}

u16 modelled_function::create_queue(nvme::submission_entry const& command) {
  const auto id = static_cast<u16>(command.dword10);
  const u32 entries = (command.dword10 >> 16) + 1;
  if (id == 0 || id > options_.grants) return nvme::code::invalid_queue_identifier;
  if (entries < 2 || entries > nvme::capabilities{options_.capabilities}.queue_entries()) return nvme::code::invalid_queue_size;
  if (!arena_.holds(reinterpret_cast<void*>(command.prp1), entries * 16)) complain("a ring where the device does not reach");
  if (command.opcode == static_cast<u8>(nvme::admin_opcode::create_completion_queue)) {
    if (completion_queues_.contains(id)) return nvme::code::invalid_queue_identifier;
    doorbells_[2 * id + 1] = 0;
    completion_queues_[id] = {command.prp1, entries};
    return nvme::code::success;
  }
  const auto ring = completion_queues_.find(static_cast<u16>(command.dword11 >> 16));
  if (ring == completion_queues_.end()) return nvme::code::completion_queue_invalid;
  if (submission_queues_.contains(id)) return nvme::code::invalid_queue_identifier;
  doorbells_[2 * id] = 0;
  engine_.attach({id, entries, ring->second.entries, reinterpret_cast<nvme::submission_entry*>(command.prp1),
                  reinterpret_cast<nvme::completion_entry*>(ring->second.address), &doorbells_[2 * id],
                  &doorbells_[2 * id + 1]});
  submission_queues_[id] = entries;
  return nvme::code::success;
}

u16 modelled_function::delete_queue(nvme::submission_entry const& command) {
  const auto id = static_cast<u16>(command.dword10);
  if (command.opcode == static_cast<u8>(nvme::admin_opcode::delete_submission_queue)) {
    if (submission_queues_.erase(id) == 0) return nvme::code::invalid_queue_identifier;
    engine_.detach(id);
    return nvme::code::success;
  }
  if (submission_queues_.contains(id)) return nvme::code::invalid_queue_deletion;
  return completion_queues_.erase(id) == 0 ? nvme::code::invalid_queue_identifier : nvme::code::success;
}

bool modelled_function::tell_event(u8 type, u8 information, u8 page) {
  const std::lock_guard lock(mutex_);
  if (event_requests_.empty() || admin_ == nullptr) return false;
  admin_->complete(event_requests_.back(), nvme::code::success,
                   static_cast<u32>(page) << 16 | static_cast<u32>(information) << 8 | type);
  event_requests_.pop_back();
  return true;
}

}  // namespace penstock::test_support
