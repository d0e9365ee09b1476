#include "planner/state/forms/shaped_tensor.h"

#include <algorithm>
#include <utility>

#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/shard_map.h"

namespace planwright {
namespace {

constexpr char kExpert[] = "{expert}";

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) Append(text, text.size() > 1 ? ", " : "", size);
  return text + "]";
}

bool SameElements(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double product = 1;  // of any numbers
  for (const int64_t size : a) product *= static_cast<double>(size);
  return product <= static_cast<double>(kMostElements) && ElementsOf(a) == ElementsOf(b);
}

void AddPieces(const StatedTensor& tensor, const Module& module, const std::vector<int>& parameters, int64_t groups,
               const std::vector<int64_t>& matrix, DiskTensor& bound) {
  const auto along = static_cast<size_t>(tensor.along);
  const int64_t experts = module.parameters[static_cast<size_t>(parameters[0])].experts;
  for (int64_t expert = experts > 0 ? 0 : -1; expert < experts; ++expert) {
    int64_t before = 0;
    for (const int index : parameters) {
      const std::vector<int64_t>& shape = module.parameters[static_cast<size_t>(index)].shape;
      bound.pieces.push_back({index, expert,
                              ElementMap({.shape = shape,
                                          .along = tensor.along,
                                          .groups = groups,
                                          .before = before,
                                          .rows = matrix[along],
                                          .swap = tensor.swap,
                                          .first = tensor.stack ? expert * ElementsOf(matrix) : 0})});
      before += shape[along];
    }
    if (expert == -1) break;
  }
}

}  // namespace

TextProblem TensorProblem(const StatedTensor& tensor, std::string_view word, std::string message) {
  return {PlaceOf(tensor.line, word, word == tensor.name ? "" : "="), Printable(message), {}};
}

std::optional<DiskTensor> ShapedTensor(const StatedTensor& tensor, const Module& module,
                                       const std::vector<int>& parameters, const ModelNumbers& numbers,
                                       TextProblems& problems) {
  const Parameter& first = module.parameters[static_cast<size_t>(parameters[0])];
  const auto along = static_cast<size_t>(tensor.along);
  const auto wrong = [&](std::string_view word, std::string message) -> std::optional<DiskTensor> {
    problems.push_back(TensorProblem(tensor, word, std::move(message)));
    return std::nullopt;
  };
  if (along >= first.shape.size())
    return wrong("along", Cat(Quoted(first.file_name), " is ", ShapeText(first.shape), ", which has no dim ", along));
  if (tensor.swap && first.shape.size() < 2)
    return wrong("swap", Cat(Quoted(first.file_name), " is ", ShapeText(first.shape), ": there is nothing to swap"));
  const int64_t groups = tensor.each ? numbers.SizeOf(*tensor.each) : 1;
  const double exact = tensor.each ? numbers.Of(*tensor.each) : 1;
  if (groups < 1 || static_cast<double>(groups) != exact)
    return wrong(tensor.each->text(), Cat(Quoted(tensor.each->text()), " is no number of groups: ", exact));
  std::vector<int64_t> matrix = first.shape;
  matrix[along] = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = module.parameters[static_cast<size_t>(parameters[i])];
    std::vector<int64_t> others = parameter.shape;
    if (others.size() == matrix.size()) others[along] = 0;
    std::vector<int64_t> expected = first.shape;
    expected[along] = 0;
    if (others != expected || parameter.experts != first.experts) {
      return wrong(tensor.parameters[i],
                   Cat(Quoted(parameter.file_name), " is ", ShapeText(parameter.shape), ", which does not go with ",
                       ShapeText(first.shape), " along dim ", along));
    }
    if (parameter.buffer != first.buffer)
      return wrong(tensor.parameters[i], Cat("a tensor holds either weights or buffers"));
    if (parameter.shape[along] % groups != 0) {
      return wrong(tensor.parameters[i], Cat(Quoted(parameter.file_name), " has ", parameter.shape[along],
                                             " rows along dim ", along, ", which ", groups, " does not divide"));
    }
    matrix[along] += parameter.shape[along];
  }
  const bool numbered = tensor.name.find(kExpert) != std::string::npos;
  if (tensor.stack && first.experts == 0)
    return wrong("stack", Cat(Quoted(first.file_name), " has no experts to stack"));
  if (first.experts > 0 && tensor.stack == numbered) {
    return wrong(tensor.name, tensor.stack ? Cat("all experts are in one tensor, so its name has no ", kExpert)
                                           : Cat("each expert has a tensor, so its name needs ", kExpert,
                                                 "; or all are in one, with `stack`"));
  }
  DiskTensor bound;
  bound.shape = matrix;
  if (tensor.swap) std::swap(bound.shape[matrix.size() - 1], bound.shape[matrix.size() - 2]);
  if (tensor.stack) bound.shape.insert(bound.shape.begin(), first.experts);
  if (!tensor.shape.empty()) {
    const std::vector<int64_t> shape = numbers.SizesOf(tensor.shape);
    const bool sizes = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size > 0; });
    if (!sizes || !SameElements(shape, bound.shape)) {
      return wrong("shape",
                   Cat("the shape is ", ShapeText(shape), ", and the elements are those of ", ShapeText(bound.shape)));
    }
    bound.shape = shape;
  }
  AddPieces(tensor, module, parameters, groups, matrix, bound);
  return bound;
}

}  // namespace planwright
