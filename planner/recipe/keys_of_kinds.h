// The keys inside models: what the statements of the kinds of models say of them.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {

// The rows of the table of keys for these kinds of models. They last as long as this, which has their texts.
class KindRows {
 public:
  explicit KindRows(std::span<const ModelStatement> statements);
  KindRows(const KindRows&) = delete;
  KindRows& operator=(const KindRows&) = delete;

  const std::vector<KeySpec>& rows() const { return rows_; }

 private:
  // `shared`: another kind has a section of this name.
  void Add(const StatedKey& key, const ModelStatement& statement, bool shared);
  std::string_view Kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::deque<std::string> texts_;
  std::vector<KeySpec> rows_;
};

}  // namespace planwright
