#include "planner/exchange/radio_arguments.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

// Sizes of the ViTs that RADIO's code names (timm).
struct NamedVit {
  std::string_view name;
  int64_t hidden, layers, heads, ffn;
};
constexpr NamedVit kVits[] = {{"vit_small_patch16_224", 384, 12, 6, 1536},
                              {"vit_base_patch16_224", 768, 12, 12, 3072},
                              {"vit_large_patch16_224", 1024, 24, 16, 4096},
                              {"vit_huge_patch16_224", 1280, 32, 16, 5120}};

std::optional<Said> IntegerAt(ConfigKeys& keys, const std::string& name, bool or_zero = false) {
  std::string path;
  const Json* value = keys.Find({name}, &path);
  return value != nullptr ? keys.Integer(*value, path, or_zero) : std::nullopt;
}

int64_t NumberIn(const std::optional<Said>& said) { return said ? std::get<int64_t>(said->value) : 0; }

class ArgumentReader {
 public:
  ArgumentReader(ConfigKeys& keys, SaidPart& encoder) : keys_(keys), encoder_(encoder) {}

  void Read() {
    std::string path;
    if (const Json* name = keys_.Find({"args.model"}, &path)) FindVit(*name, path);
    if (!unknown_) {
      const std::optional<Said> hidden = SizeOfVit("hidden_size", &NamedVit::hidden);
      SetLayers(SizeOfVit("num_hidden_layers", &NamedVit::layers));
      Set("hidden", hidden);
      Set("heads", SizeOfVit("num_attention_heads", &NamedVit::heads));
      Set("ffn", SizeOfVit("intermediate_size", &NamedVit::ffn));
    }
    const std::optional<Said> patch = IntegerAt(keys_, "patch_size");
    if (keys_.Find({"patch_size"}) == nullptr) keys_.findings().Problem(keys_.PathOf("patch_size"), "", "is missing");
    Set("patch", patch);
    const std::optional<Said> largest = IntegerAt(keys_, "args.cpe_max_size");
    const std::optional<Said> resolution = IntegerAt(keys_, "max_resolution");
    ReadClassTokens();
    Set("max_image", largest ? largest : resolution);
    if (!largest && !resolution) keys_.findings().Problem(keys_.PathOf("args.cpe_max_size"), "", "is missing");
  }

 private:
  void FindVit(const Json& name, const std::string& path) {
    const std::optional<Said> word = keys_.Word(name, path);
    if (!word) return;
    name_path_ = path;
    for (const NamedVit& each : kVits) {
      if (word->word() == each.name) vit_ = &each;
    }
    unknown_ = vit_ == nullptr && keys_.Find({"hidden_size"}) == nullptr;
    if (unknown_) {
      keys_.findings().Problem(path, ValueText(name),
                               "is no ViT that can be expressed: small, base, large or huge, of patches of 16 and "
                               "without a gate");
    }
  }

  // A size by its own key, or that of the named ViT; both must say the same.
  std::optional<Said> SizeOfVit(const std::string& key, int64_t NamedVit::*size) {
    const bool given = keys_.Find({key}) != nullptr;
    const std::optional<Said> said = IntegerAt(keys_, key);
    if (vit_ == nullptr) {
      if (!given) keys_.findings().Problem(keys_.PathOf(key), "", "is missing");
      return said;
    }
    if (said && NumberIn(said) != vit_->*size) {
      keys_.findings().Problem(said->from, said->text(),
                               absl::StrCat("is not that of ", name_path_, ", which is ", vit_->*size));
    }
    return Said{vit_->*size, name_path_};
  }

  // How many tokens stand before the patches: one for each teacher, and registers up to the next multiple. RADIO's code
  // adds a whole multiple where there is nothing to fill.
  void ReadClassTokens() {
    std::set<std::string> teachers;
    std::string from;
    const Json* list = keys_.Find({"args.teachers"}, &from);
    for (size_t i = 0; list != nullptr && list->is_array() && i < list->size(); ++i) {
      const Json& teacher = (*list)[i];
      if (teacher.is_object() && teacher.contains("name") && teacher["name"].is_string())
        teachers.insert(teacher["name"].get<std::string>());
    }
    const Json* each = keys_.Find({"args.cls_token_per_teacher"});
    const bool for_each = each == nullptr || *each != Json(false);
    const auto tokens = static_cast<int64_t>(for_each && !teachers.empty() ? teachers.size() : 1);
    const int64_t registers = NumberIn(IntegerAt(keys_, "args.cpe_num_registers", true));
    const int64_t multiple = NumberIn(IntegerAt(keys_, "args.register_multiple", true));
    if (registers > 0) return Set("class_tokens", Said{tokens + registers, from + " and cpe_num_registers"});
    if (multiple == 0) return Set("class_tokens", Said{tokens, from});
    Set("class_tokens", Said{tokens + multiple - tokens % multiple, from + " and register_multiple"});
  }

  void Set(const char* key, const std::optional<Said>& said) {
    if (said) encoder_.Set(key, *said);
  }

  void SetLayers(const std::optional<Said>& said) {
    if (!said) return;
    encoder_.layers = NumberIn(said);
    if (encoder_.layers <= int64_t{kMostLayers}) {
      for (int64_t i = 0; i < encoder_.layers; ++i) encoder_.letters += encoder_.statement->repeated;
    }
    encoder_.Set("layers", *said);
  }

  ConfigKeys& keys_;
  SaidPart& encoder_;
  const NamedVit* vit_ = nullptr;
  std::string name_path_;
  bool unknown_ = false;  // a ViT that is not known, and whose sizes are not there either
};

}  // namespace

void ReadRadioArguments(ConfigKeys& keys, SaidPart& encoder) { ArgumentReader(keys, encoder).Read(); }

}  // namespace planwright
