#include "planner/plan/data_kinds.h"

#include <algorithm>

namespace planwright {
namespace {

constexpr DataKindRow kDataKinds[] = {
#define DATA_KIND(id, name, text, ...) {.kind = DataKind::k##id, .word = name, .meaning = text, __VA_ARGS__},
#include "planner/plan/data_kinds.def"
};

constexpr SourceKindRow kSourceKinds[] = {
#define SOURCE_KIND(id, name, text, ...) {.kind = SourceKind::k##id, .word = name, .meaning = text, __VA_ARGS__},
#include "planner/plan/data_kinds.def"
};

constexpr GoneDataKind kGoneDataKinds[] = {
#define GONE_DATA_KIND(word, help, in_plan) {word, help, in_plan},
#include "planner/plan/data_kinds.def"
};

// Null: none.
template <typename Rows>
auto FindWord(const Rows& rows, std::string_view word) -> decltype(std::begin(rows)) {
  const auto found = std::find_if(std::begin(rows), std::end(rows), [&](const auto& row) { return row.word == word; });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

std::span<const DataKindRow> DataKinds() { return kDataKinds; }
std::span<const SourceKindRow> SourceKinds() { return kSourceKinds; }
std::span<const GoneDataKind> GoneDataKinds() { return kGoneDataKinds; }

const DataKindRow& RowOf(DataKind kind) { return kDataKinds[static_cast<size_t>(kind)]; }
const SourceKindRow& RowOf(SourceKind kind) { return kSourceKinds[static_cast<size_t>(kind)]; }

std::string_view DataKindName(DataKind kind) { return RowOf(kind).word; }
std::string_view SourceKindName(SourceKind kind) { return RowOf(kind).word; }

std::optional<DataKind> DataKindFromName(std::string_view word) {
  const DataKindRow* row = FindWord(kDataKinds, word);
  return row == nullptr ? std::nullopt : std::optional(row->kind);
}

std::optional<SourceKind> SourceKindFromName(std::string_view word) {
  const SourceKindRow* row = FindWord(kSourceKinds, word);
  return row == nullptr ? std::nullopt : std::optional(row->kind);
}

const GoneDataKind* FindGoneDataKind(std::string_view word) { return FindWord(kGoneDataKinds, word); }

}  // namespace planwright
