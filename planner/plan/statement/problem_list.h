// The problems of a statement as they are found: each once, of each place those of the first case that shows any.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "planner/base/text/utf8.h"
#include "planner/plan/table_text.h"

namespace planwright {

class ProblemList {
 public:
  void Add(const Location& where, const std::string& message, std::vector<Location> from = {}) {
    if (full()) return;
    TextProblem problem = {where, Printable(message), std::move(from)};
    found_.try_emplace({where.line, where.column, problem.message}, problem);
  }

  // Adds those of another case. What is wrong at one place shows in each case with other numbers: the first is told.
  void AddCase(const ProblemList& other) {
    const ProblemList before = *this;
    for (const auto& [key, problem] : other.found_) {
      if (!before.HasPlace(problem.where) && !full()) found_.try_emplace(key, problem);
    }
  }

  bool empty() const { return found_.empty(); }
  // More are not told: who wrote so many mistakes has more to do first, and each takes time.
  bool full() const { return found_.size() >= kMost; }

  // In the order of their places.
  TextProblems Problems() const {
    TextProblems problems;
    for (const auto& [key, problem] : found_) problems.push_back(problem);
    return problems;
  }

 private:
  static constexpr size_t kMost = 200;

  bool HasPlace(const Location& where) const {
    const auto next = found_.lower_bound({where.line, where.column, ""});
    return where.known() && next != found_.end() && std::get<0>(next->first) == where.line &&
           std::get<1>(next->first) == where.column;
  }

  std::map<std::tuple<int, int, std::string>, TextProblem> found_;
};

}  // namespace planwright
