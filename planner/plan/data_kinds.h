// The kinds of data and of sources, from the table data_kinds.def. Code that depends on the kind asks a fact of its
// row; a switch on the enum stands only where each kind has code of its own.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace planwright {

// `data.kind`: where samples come from (docs/training/data.md#samples).
enum class DataKind {
#define DATA_KIND(id, word, meaning, ...) k##id,
#include "planner/plan/data_kinds.def"
};

// `data.sources[].kind`: what files a source of documents has.
enum class SourceKind {
#define SOURCE_KIND(id, word, meaning, ...) k##id,
#include "planner/plan/data_kinds.def"
};

struct DataKindRow {
  // Which samples an evaluation set has is said by one key of the set.
  struct SetKey {
    std::string_view key;      // "seed"
    std::string_view what;     // what it gives, for messages: "samples of another seed"
    std::string_view example;  // as it is written: "seed: NUMBER"
  };

  DataKind kind{};
  std::string_view word, meaning;
  bool drawn = false;       // samples are draws, with images and texts that the section describes; no file is read
  bool batch_file = false;  // samples are the rows of one file, `path`
  bool mixed = false;       // samples are packed from documents of `sources`, each with a weight
  bool indexed = false;     // needs an index (docs/training/data.md#index), whose digest ranks compare
  bool tokenized = false;  // `tokenizer` says what text is, and files or it which ids stand for padding, end and images
  bool resized = false;    // images have any size, and are resized to `min_patches` .. `max_patches`
  SetKey set;
};

struct SourceKindRow {
  SourceKind kind{};
  std::string_view word, meaning;
  bool shards = false;      // files are `shards`, any number of them; else the pair `path`.bin and `path`.idx
  bool images = false;      // documents can have images
  bool damageable = false;  // documents can be damaged one by one, and left out
  bool ids_alone = false;   // text is ids, whatever its files are called: it needs `tokenizer: ids`
};

// A kind that an earlier version had.
struct GoneDataKind {
  std::string_view word;
  std::string_view help;     // what a recipe says instead
  std::string_view in_plan;  // what becomes of a plan that has it
};

// In the table's order.
std::span<const DataKindRow> DataKinds();
std::span<const SourceKindRow> SourceKinds();
std::span<const GoneDataKind> GoneDataKinds();

const DataKindRow& RowOf(DataKind kind);
const SourceKindRow& RowOf(SourceKind kind);

// As recipes and plans write it.
std::string_view DataKindName(DataKind kind);
std::string_view SourceKindName(SourceKind kind);

// Nothing: no such kind.
std::optional<DataKind> DataKindFromName(std::string_view word);
std::optional<SourceKind> SourceKindFromName(std::string_view word);
// Null: there never was one.
const GoneDataKind* FindGoneDataKind(std::string_view word);

}  // namespace planwright
