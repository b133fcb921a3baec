// Every controller that the contract suite runs against, each with one namespace of known bytes.
#pragma once

#include "support/host_driver.hpp"
#include "support/qemu_machine.hpp"

#include "penstock/controller/model_controller.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/executor/executor.hpp"
#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <unistd.h>

namespace penstock::test_support {

/// A directory that goes away with its files.
class temporary_directory {
 public:
  temporary_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  temporary_directory(temporary_directory const&) = delete;
  temporary_directory& operator=(temporary_directory const&) = delete;
  ~temporary_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(std::string const& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

using byte_vector = std::vector<std::byte>;

inline byte_vector random_bytes(u64 count, u64 seed) {
  std::mt19937_64 generator(seed);
  byte_vector result(count);
  for (u64 k = 0; k < count; k += 8) {
    const u64 word = generator();
    std::memcpy(result.data() + k, &word, std::min<u64>(8, count - k));
  }
  return result;
}

inline void write_file(std::string const& path, byte_vector const& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path);
}

inline byte_vector read_file(std::string const& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  byte_vector result(static_cast<u64>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(result.data()), static_cast<std::streamsize>(result.size()));
  if (!in) throw std::runtime_error("cannot read " + path);
  return result;
}

enum class medium { memory, file, direct_file, model, server, timed_server, qemu };

struct controller_kind {
  char const* name;
  medium where;
  io_engine engine = io_engine::automatic;
  bool copy_resident = false;
  u32 threads = 0;

  bool needs_io_uring() const { return engine == io_engine::io_uring; }
  /// It refuses what a correct host never does, each thing as we chose; a foreign one does as it likes.
  bool ours() const { return where != medium::qemu; }
};

inline void PrintTo(controller_kind const& kind, std::ostream* out) { *out << kind.name; }

inline std::vector<controller_kind> all_controllers() {
  return {
      {"memory_polled", medium::memory},
      {"memory_threads", medium::memory, io_engine::automatic, false, 2},
      {"mapping_polled", medium::file, io_engine::automatic, true},
      {"mapping_threads", medium::file, io_engine::automatic, true, 2},
      {"io_uring_polled", medium::file, io_engine::io_uring},
      {"io_uring_threads", medium::file, io_engine::io_uring, false, 2},
      {"io_uring_direct_polled", medium::direct_file, io_engine::io_uring},
      {"io_uring_direct_threads", medium::direct_file, io_engine::io_uring, false, 1},
      {"pread_polled", medium::file, io_engine::pread},
      {"pread_threads", medium::file, io_engine::pread, false, 2},
      {"pread_direct_polled", medium::direct_file, io_engine::pread},
      {"model_polled", medium::model},
      {"model_threads", medium::model, io_engine::automatic, false, 2},
      {"model_server_polled", medium::server},
      {"model_server_threads", medium::server, io_engine::automatic, false, 2},
      {"timed_model_server_polled", medium::timed_server},
      {"timed_model_server_threads", medium::timed_server, io_engine::automatic, false, 2},
      {"pcie_qemu_polled", medium::qemu},
      {"pcie_qemu_threads", medium::qemu, io_engine::automatic, false, 2},
  };
}

inline std::vector<controller_kind> controllers_of_ours() {
  std::vector<controller_kind> all = all_controllers();
  std::erase_if(all, [](controller_kind const& kind) { return !kind.ours(); });
  return all;
}

/// Why this kind can't run here, or nothing.
inline std::string reason_to_skip(controller_kind const& kind) {
  std::string reason;
  if (kind.needs_io_uring() && !io_uring_usable(&reason)) return "io_uring: " + reason;
  if (kind.where == medium::qemu) return reason_without_qemu();
  if (kind.where != medium::direct_file) return "";
  temporary_directory directory;
  write_file(directory.file("probe"), byte_vector(4096));
  try {
    software_controller probe;
    probe.add_namespace({directory.file("probe"), true});
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

/// A controller with namespace 1 over `content`.
class controller_bed {
 public:
  explicit controller_bed(controller_kind const& kind, byte_vector content) : kind_(kind), content_(std::move(content)) {
    if (kind.where == medium::model) {
      model_options options;
      options.threads = kind.threads;
      auto model = std::make_unique<model_controller>(options);
      model->add_namespace(content_);
      controller_ = std::move(model);
      return;
    }
    if (kind.where == medium::qemu) {
      open_qemu();
      return;
    }
    if (kind.where == medium::server || kind.where == medium::timed_server) {
      open_server();
      return;
    }
    software_options options;
    options.engine = kind.engine;
    options.copy_resident = kind.copy_resident;
    options.threads = kind.threads;
    auto software = std::make_unique<software_controller>(options);
    if (kind.where == medium::memory) {
      software->add_namespace(content_);
    } else {
      write_file(path(), content_);
      software->add_namespace({path(), kind.where == medium::direct_file, true});
    }
    controller_ = std::move(software);
  }

  ~controller_bed() { memory_under_test() = nullptr; }
  controller_bed(controller_bed const&) = delete;
  controller_bed& operator=(controller_bed const&) = delete;

  controller& far_side() { return server_ != nullptr ? *drive_ : *controller_; }
  std::string path() const { return directory_.file("data"); }

  /// What the namespace holds now, looked at behind the controller's back.
  byte_vector stored() const {
    if (qemu_ != nullptr) return read_file(qemu_->file(0, 1));
    return kind_.where == medium::file || kind_.where == medium::direct_file ? read_file(path()) : content_;
  }

  /// What the host did that NVMe leaves undefined, where somebody other than us watches for it.
  std::vector<std::string> complaints() const { return qemu_ != nullptr ? qemu_->complaints() : std::vector<std::string>(); }

 private:
  void open_qemu() {
    qemu_ = std::make_unique<qemu_machine>(std::vector<qemu_drive>{{{{content_.size(), 512, ""}}, ",mdts=8"}});
    write_file(qemu_->file(0, 1), content_);
    memory_under_test() = &qemu_->memory();
    pcie_options options;
    options.threads = kind_.threads;
    controller_ = std::make_unique<pcie_controller>(qemu_->function(0), options);
  }

  void open_server() {
    executor_ = open_executor("cpu", 1);
    model_server_options options;
    options.units = kind_.threads;
    server_ = std::make_unique<model_server>(*executor_, options);
    model_drive_options drive;
    if (kind_.where == medium::timed_server) drive.timing = {20'000, 8, 1e6, 1e6, 5e5, 5e5};
    drive_ = &server_->add_drive(drive);
    drive_->add_namespace(content_.data(), content_.size());
    server_->start();
  }

  controller_kind kind_;
  byte_vector content_;
  temporary_directory directory_;
  std::unique_ptr<qemu_machine> qemu_;
  std::unique_ptr<controller> controller_;
  std::unique_ptr<executor> executor_;
  std::unique_ptr<model_server> server_;
  model_drive* drive_ = nullptr;
};

inline u64 block_count(byte_vector const& content, u64 block_bytes = 512) { return content.size() / block_bytes; }

/// Whether a buffer holds what lies at `offset` of `content`, and zeros past its end.
inline ::testing::AssertionResult holds(data_buffer const& buffer, byte_vector const& content, u64 offset) {
  if (offset + buffer.bytes() <= content.size() && std::memcmp(buffer.data(), content.data() + offset, buffer.bytes()) == 0) {
    return ::testing::AssertionSuccess();
  }
  for (u64 k = 0; k < buffer.bytes(); ++k) {
    const std::byte expected = offset + k < content.size() ? content[offset + k] : std::byte{0};
    if (buffer.data()[k] != expected) {
      return ::testing::AssertionFailure() << "byte " << k << " of " << buffer.bytes() << ", content offset " << offset + k;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace penstock::test_support
