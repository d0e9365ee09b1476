// Cases in which dialects are judged: what import, export and weights say of folders and runs. A line of a dialect
// counts if some case notices that it is gone, or that a word or a number of it is another one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/exchange/expected_tensors.h"
#include "planner/plan/plan.h"
#include "planner/state/dialect/dialect.h"
#include "tests/exchange/toy_folder.h"

namespace planwright::testing {

class DialectJudge {
 public:
  // A case: what some program says with these dialects.
  using Case = std::function<std::string(const DialectSet& dialects)>;

  void Add(Case one) { cases_.push_back(std::move(one)); }
  void AddImport(const nlohmann::ordered_json& config, const TensorShapes& shapes = {});
  void AddImport(const Toy& toy);
  // Export of the whole run and of its modules.
  void AddExport(Plan plan, const std::vector<std::string>& modules);
  // Every path that a line of the toy's dialect names: gone, under each of its names, and with values that it may and
  // may not have.
  void Vary(const Toy& toy, const Dialect& whole);

  // Fails for each line of the dialects of these kinds, and each word and number of one, that no case notices. The
  // first cases should be the most telling ones.
  void ExpectEachLineCounts(const std::vector<std::string>& kinds, int least_mutants);

 private:
  bool Notices(const DialectSet& dialects);
  void AddWith(const Toy& toy, const nlohmann::ordered_json::json_pointer& object, const std::string& path,
               const nlohmann::ordered_json& value);
  void VaryRule(const Toy& toy, const nlohmann::ordered_json::json_pointer& object, const DialectRule& rule,
                const std::string& path, nlohmann::ordered_json& loud);
  void VaryNames(const Toy& toy, const nlohmann::ordered_json::json_pointer& object, const DialectPaths& paths);

  std::vector<std::unique_ptr<Plan>> plans_;
  std::vector<Case> cases_;
  std::vector<std::string> right_;
  std::vector<size_t> order_;
};

}  // namespace planwright::testing
