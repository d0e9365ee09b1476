#include "planner/exchange/made_tensors.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/exchange/convert.h"
#include "planner/exchange/said_text.h"
#include "planner/plan/shard_map.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

OutTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape) {
  const int64_t bytes = ElementsOf(shape) * DTypeBytes(dtype);
  return {std::move(name), SafetensorsTypeName(dtype), std::move(shape), bytes, true, {}};
}

// A tensor of few elements.
OutTensor Small(std::string name, DType dtype, std::vector<int64_t> shape, std::string content) {
  OutTensor tensor = Tensor(std::move(name), dtype, std::move(shape));
  tensor.read = [content = std::move(content)](int64_t first, std::span<std::byte> to) {
    std::memcpy(to.data(), content.data() + first, to.size());
    return absl::OkStatus();
  };
  return tensor;
}

// A tensor whose elements all are `number`.
OutTensor FilledTensor(std::string name, DType dtype, std::vector<int64_t> shape, float number) {
  OutTensor tensor = Tensor(std::move(name), dtype, std::move(shape));
  tensor.read = [dtype, number](int64_t, std::span<std::byte> to) {
    std::byte element[8];
    const size_t width = DTypeBytes(dtype);
    ConvertNumbers(DType::kFp32, std::as_bytes(std::span(&number, 1)), dtype, std::span(element).first(width));
    for (size_t at = 0; at < to.size(); at += width) std::memcpy(to.data() + at, element, width);
    return absl::OkStatus();
  };
  return tensor;
}

template <typename T>
std::string BytesOf(const std::vector<T>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

// Numbers of a list, as this type.
std::string BytesOf(const nlohmann::ordered_json& list, DType dtype) {
  const auto numbers = list.get<std::vector<double>>();
  std::string bytes(numbers.size() * static_cast<size_t>(DTypeBytes(dtype)), '\0');
  ConvertNumbers(DType::kFp64, std::as_bytes(std::span(numbers)), dtype, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

class Maker {
 public:
  Maker(const SaidModel& read, DType dtype, std::vector<std::string>& made_up)
      : read_(read), dtype_(dtype), made_up_(made_up) {}

  std::vector<OutTensor> Run() {
    for (const std::optional<SaidPart>* part : {&read_.encoder, &read_.language}) {
      if (*part) Make(read_.dialects->RootOf(*(*part)->dialect), **part, false);
    }
    if (read_.composite()) Make(*read_.dialect, *read_.encoder, true);
    return std::move(tensors_);
  }

 private:
  // `whole`: names are those of the folder.
  void Make(const Dialect& dialect, const SaidPart& part, bool whole) {
    const std::vector<DialectMade>& all = dialect.made;
    for (size_t i = 0; i < all.size();) {
      if (all[i].alone && read_.composite()) {
        ++i;
        continue;
      }
      // Lines of layers that follow each other are made layer by layer.
      size_t end = i + 1;
      const bool layers = OfLayers(all[i]);
      while (layers && end < all.size() && OfLayers(all[end])) ++end;
      const int64_t times = layers ? part.layers : 1;
      for (int64_t layer = 0; layer < times; ++layer) {
        for (size_t one = i; one < end; ++one) AddTensor(all[one], part, layer, whole);
      }
      for (; i < end; ++i) Tell(all[i], part, whole);
    }
  }

  static bool OfLayers(const DialectMade& made) { return absl::StrContains(made.name, kLayer); }

  void AddTensor(const DialectMade& made, const SaidPart& part, int64_t layer, bool whole) {
    const std::string name = NameInFolder(absl::StrReplaceAll(made.name, {{kLayer, absl::StrCat(layer)}}), part, whole);
    std::vector<int64_t> shape;
    for (const DialectFormula& size : made.sizes)
      shape.push_back(static_cast<int64_t>(size.Evaluate([&](const std::string& of) { return part.NumberOf(of); })));
    const DType dtype = made.dtype.value_or(dtype_);
    if (made.fill == "ones" || made.fill == "zeros") {
      tensors_.push_back(FilledTensor(name, dtype, shape, made.fill == "ones" ? 1.0F : 0.0F));
      return;
    }
    std::string bytes;
    if (made.fill == "counting") {
      std::vector<int64_t> numbers(static_cast<size_t>(ElementsOf(shape)));
      std::iota(numbers.begin(), numbers.end(), 0);
      bytes = BytesOf(numbers);
    } else {
      bytes = BytesOf(nlohmann::ordered_json::parse(made.fill), dtype);
    }
    tensors_.push_back(Small(name, dtype, shape, std::move(bytes)));
    tensors_.back().parameter = false;
  }

  // The name in a folder of the whole, of one that the part has in a folder of its own.
  std::string NameInFolder(const std::string& name, const SaidPart& part, bool whole) const {
    if (whole || !read_.composite()) return name;
    const bool encoder = part.statement->has_images;
    const FormLines& of_whole = encoder ? read_.dialect->forms : read_.dialect->language_forms;
    std::string ours = name;
    const StoredForm alone = read_.dialects->RootOf(*part.dialect).forms.Forms().front();
    for (const StatedNames& names : alone.names) {
      if (!name.starts_with(names.theirs)) continue;
      ours = absl::StrCat(absl::StrReplaceAll(names.ours, {{"{encoder}", ""}}), name.substr(names.theirs.size()));
      break;
    }
    return of_whole.Forms().front().NameOf(ours, "");
  }

  void Tell(const DialectMade& made, const SaidPart& part, bool whole) {
    if (made.text.empty()) return;
    const SaidPart& of = whole ? *read_.encoder : part;
    std::string begin = NameInFolder("", of, false);
    made_up_.push_back(Filled(absl::StrReplaceAll(made.text, {{"{names}", begin}}), of));
  }

  static constexpr char kLayer[] = "{layer}";

  const SaidModel& read_;
  const DType dtype_;
  std::vector<std::string>& made_up_;
  std::vector<OutTensor> tensors_;
};

}  // namespace

std::vector<OutTensor> MadeTensors(const SaidModel& read, DType dtype, std::vector<std::string>& made_up) {
  return Maker(read, dtype, made_up).Run();
}

}  // namespace planwright
