#include "planner/data/samples/prepared.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/plan/source_rules.h"

namespace planwright {
namespace {

using PreparedJson = nlohmann::json;

absl::Status PreparedError(const std::string& what) { return absl::InvalidArgumentError(what); }

// The field of an object, or null (of json) if it has none.
const PreparedJson& FieldOf(const PreparedJson& json, const std::string& name) {
  static const PreparedJson kNothing;
  if (!json.is_object()) return kNothing;
  const auto found = json.find(name);
  return found == json.end() ? kNothing : *found;
}

// What is there, for messages: short, whatever it is.
std::string Shown(const PreparedJson& json) {
  if (json.is_null()) return "nothing";
  if (json.is_object()) return "an object";
  if (json.is_array()) return "a list";
  std::string text = JsonText(json);
  if (text.size() > 80) text = text.substr(0, 80) + "...";
  return text;
}

// The whole number of 0 or more at `where`.
absl::Status ReadCount(const PreparedJson& json, const std::string& name, const std::string& where, int64_t& into) {
  const PreparedJson& field = FieldOf(json, name);
  if (!field.is_number_unsigned() || field.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
    return PreparedError(absl::StrCat(where, name, " is ", Shown(field), "; it must be a whole number of 0 or more"));
  into = field.get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadDigest(const PreparedJson& json, const std::string& where, std::string& into) {
  const PreparedJson& field = FieldOf(json, "sha256");
  if (field.is_string()) into = field.get<std::string>();
  if (!field.is_string() || !IsDigest(into))
    return PreparedError(absl::StrCat(where, ".sha256 is ", Shown(field), "; it must be 64 lower-case hex digits"));
  return absl::OkStatus();
}

absl::Status ReadIds(const PreparedJson& json, Prepared& into) {
  const PreparedJson& ids = FieldOf(json, "ids");
  if (absl::Status status = ReadCount(json, "vocabulary", "", into.vocabulary); !status.ok()) return status;
  for (const auto& [name, id] :
       {std::pair("image", &into.image), std::pair("pad", &into.pad), std::pair("end", &into.end)}) {
    if (id == &into.image && ids.is_object() && FieldOf(ids, name).is_null()) continue;
    if (absl::Status status = ReadCount(ids, name, "ids.", *id); !status.ok()) return status;
    if (*id >= into.vocabulary)
      return PreparedError(
          absl::StrCat("ids.", name, " is ", *id, "; it must be below the vocabulary of ", into.vocabulary));
  }
  return absl::OkStatus();
}

absl::Status ReadShards(const PreparedJson& json, Prepared& into) {
  const PreparedJson& shards = FieldOf(json, "shards");
  if (!shards.is_array()) return PreparedError(absl::StrCat("shards is ", Shown(shards), "; it must be a list"));
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string where = absl::StrCat("shards[", i, "].");
    const PreparedJson& file = FieldOf(shards[i], "file");
    if (!file.is_string()) return PreparedError(absl::StrCat(where, "file is ", Shown(file), "; it must be a name"));
    PreparedShard shard;
    for (const auto& [name, count] : {std::pair("documents", &shard.documents), std::pair("tokens", &shard.tokens),
                                      std::pair("bytes", &shard.bytes)}) {
      if (absl::Status status = ReadCount(shards[i], name, where, *count); !status.ok()) return status;
    }
    if (!into.shards.emplace(file.get<std::string>(), shard).second)
      return PreparedError(absl::StrCat(where, "file is ", Shown(file), ", as that of an earlier shard"));
  }
  return absl::OkStatus();
}

std::string OfSpecialId(const char* name, int64_t id, int64_t planned) {
  return absl::StrCat("its id of the ", name, " token is ", id, ", and that of the recipe ", planned);
}

}  // namespace

absl::StatusOr<Prepared> ReadPrepared(std::string_view text) {
  const absl::StatusOr<PreparedJson> json = ParseJson(text, kPreparedJson);
  if (!json.ok()) return json.status();
  if (FieldOf(*json, "format") != "planwright_prepared")
    return PreparedError(
        absl::StrCat("format is ", Shown(FieldOf(*json, "format")), "; it must be \"planwright_prepared\""));
  if (FieldOf(*json, "version") != 1)
    return PreparedError(absl::StrCat("version is ", Shown(FieldOf(*json, "version")), "; this program reads 1"));
  Prepared prepared;
  const PreparedJson& tokenizer = FieldOf(*json, "tokenizer");
  const PreparedJson& name = FieldOf(tokenizer, "name");
  if (!name.is_string()) return PreparedError(absl::StrCat("tokenizer.name is ", Shown(name), "; it must be a name"));
  prepared.tokenizer = name.get<std::string>();
  if (absl::Status status = ReadDigest(tokenizer, "tokenizer", prepared.tokenizer_digest); !status.ok()) return status;
  if (const PreparedJson& its_template = FieldOf(*json, "template"); !its_template.is_null()) {
    if (absl::Status status = ReadDigest(its_template, "template", prepared.template_digest); !status.ok())
      return status;
  }
  if (absl::Status status = ReadIds(*json, prepared); !status.ok()) return status;
  if (absl::Status status = ReadShards(*json, prepared); !status.ok()) return status;
  return prepared;
}

absl::StatusOr<std::optional<Prepared>> FindPrepared(const std::string& shard) {
  const std::string path = (std::filesystem::path(shard).parent_path() / kPreparedFile).string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<Prepared>();
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kPreparedJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<Prepared> prepared = ReadPrepared(*text);
  if (!prepared.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", prepared.status().message()));
  prepared->path = path;
  return std::optional<Prepared>(*std::move(prepared));
}

std::vector<std::string> ComparePrepared(const Prepared& prepared, const DataPlan& data) {
  std::vector<std::string> problems;
  if (!data.tokenizer_digest.empty() && prepared.tokenizer_digest != data.tokenizer_digest) {
    problems.push_back(absl::StrCat("its tokenizer ", prepared.tokenizer, " has the digest ", prepared.tokenizer_digest,
                                    ", and tokenizer_digest is ", data.tokenizer_digest));
  }
  // Shards of plain text have no template.
  if (!data.template_digest.empty() && !prepared.template_digest.empty() &&
      prepared.template_digest != data.template_digest) {
    problems.push_back(absl::StrCat("its template has the digest ", prepared.template_digest,
                                    ", and template_digest is ", data.template_digest));
  }
  if (prepared.image >= 0 && data.image_token >= 0 && prepared.image != data.image_token)
    problems.push_back(OfSpecialId("image", prepared.image, data.image_token));
  if (prepared.pad != data.pad_token) problems.push_back(OfSpecialId("pad", prepared.pad, data.pad_token));
  if (prepared.end != data.end_token) problems.push_back(OfSpecialId("end", prepared.end, data.end_token));
  if (prepared.vocabulary > data.vocabulary) {
    problems.push_back(
        absl::StrCat("its ids are below ", prepared.vocabulary, ", and the model's vocabulary is ", data.vocabulary));
  }
  return problems;
}

}  // namespace planwright
