// What `penstock bench write` writes to: a modelled drive, memory or a file, whose first half is the bare client's and whose
// second half is the cache's, so that both have one controller and neither meets what the other wrote.
#pragma once

#include "libs/bench/write.hpp"
#include "penstock/controller/model_server.hpp"
#include "penstock/controller/software_controller.hpp"

#include <cstdio>
#include <memory>
#include <span>

namespace penstock::bench {

class write_media {
 public:
  /// Word w holds value_at(w). Throws penstock::error for media that cannot be.
  write_media(executor& on, write_options const& options);
  write_media(write_media const&) = delete;
  write_media& operator=(write_media const&) = delete;

  controller& owner() { return *owner_; }
  u32 namespace_id() const { return namespace_; }
  u64 half_bytes() const { return half_; }
  std::string engine() const { return owner_->engine(); }
  /// Who waits lets the controller work.
  bool polled() const;
  /// SMs for those who store.
  u32 units(u32 asked) const;
  /// Between them a modelled drive serves, and nothing may be allocated; others always do.
  void start();
  void stop();
  /// Of the second half. REQUIRES: nobody writes.
  void read(u64 offset, std::span<u64> to) const;

 private:
  /// Removed again when it goes.
  struct made_file {
    std::string path;
    ~made_file() {
      if (!path.empty()) std::remove(path.c_str());
    }
  };

  void fill();
  void make_file(std::string const& path, progress_fn const& progress);

  executor& on_;
  u64 half_;
  made_file file_;
  std::unique_ptr<model_server> server_;
  buffer<u64> model_words_;
  std::vector<u64> words_;  ///< of the software controller
  std::unique_ptr<software_controller> software_;
  controller* owner_ = nullptr;
  u32 namespace_ = 0;
};

}  // namespace penstock::bench
