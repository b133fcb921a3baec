#include "libs/sampling/node_scores.hpp"

#include "penstock/host/error.hpp"

#include <string>

namespace penstock::sampling {
namespace {

constexpr auto local = memory_kind::local;
constexpr double change_unit = 256;  // settle_scores

std::vector<u64> read_all(buffer<u64> const& from) {
  std::vector<u64> all(from.size());
  if (!all.empty()) from.read(all);
  return all;
}

}  // namespace

node_scores::node_scores(executor& on, u64 nodes, edge_type const& lists)
    : on_(on), nodes_(nodes), lists_(lists), scores_(on.memory(), local, nodes), sums_(on.memory(), local, nodes),
      words_(on.memory(), local, 2) {}

void node_scores::push(u64 const* scores) {
  const step_place to{&on_, on_.stream(), 0};
  run_rows(to, 2, reset_words{words_.data(), 2});
  with_lists({lists_}, {nodes_}, to.stream, [&](std::vector<edge_lists> const& lent) {
    run(to, nodes_, push_scores{lent.front(), scores, sums_.data(), words_.data()});
    finish(to);
  });
  throw_problem(read_all(words_)[0], "score nodes");
}

std::vector<double> node_scores::count_out_degrees() {
  push(nullptr);
  const std::vector<u64> counted = read_all(sums_);
  sums_ = {on_.memory(), local, nodes_};  // zeros
  return {counted.begin(), counted.end()};
}

void node_scores::start(std::span<std::int64_t const> weighted) {
  const double each = score_one / static_cast<double>(nodes_);
  std::vector<u64> scores(nodes_, static_cast<u64>(each));
  for (const std::int64_t node : weighted) {
    if (node < 0 || static_cast<u64>(node) >= nodes_) {
      throw_bad_input("score nodes", "training node " + std::to_string(node),
                      "it is no node: give numbers from 0 to " + std::to_string(nodes_ - 1));
    }
    scores[static_cast<u64>(node)] = static_cast<u64>(score_one / static_cast<double>(weighted.size()));
  }
  if (nodes_ != 0) scores_.write(scores);
}

double node_scores::step(double damping) {
  push(scores_.data());
  const step_place to{&on_, on_.stream(), 0};
  const auto least = static_cast<u64>((1 - damping) * score_one / static_cast<double>(nodes_));
  const auto factor = static_cast<u64>(damping * 0x1p63) * 2;
  run_rows(to, nodes_, settle_scores{nodes_, least, factor, scores_.data(), sums_.data(), words_.data() + 1});
  finish(to);
  return static_cast<double>(read_all(words_)[1]) * change_unit / score_one;
}

std::vector<double> node_scores::values() const {
  std::vector<double> values;
  for (const u64 score : read_all(scores_)) values.push_back(static_cast<double>(score) / score_one);
  return values;
}

}  // namespace penstock::sampling
