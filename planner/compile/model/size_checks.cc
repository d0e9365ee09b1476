#include "planner/compile/model/size_checks.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace planwright {

void SizeChecks::Cut(const std::string& what, const Located<int64_t>& size, const std::string& axis,
                     const Located<int64_t>& parts, bool may_repeat) {
  if (*parts < 1 || *size % *parts == 0 || (may_repeat && *parts % *size == 0)) return;
  Diagnostic& problem = diagnostics_.Error(
      DiagnosticKind::kLayoutDoesNotDivide, parts.where.known() ? parts.where : module_.placement,
      absl::StrCat(what, " of module ", *module_.name, " is ", *size, ", which is not a multiple of ", axis, " = ",
                   *parts, may_repeat ? ", nor divides it" : ""),
      absl::StrContains(axis, " x ") ? absl::StrCat("choose sizes so that ", axis, " divides ", *size)
                                     : absl::StrCat("choose ", axis, " among the divisors ",
                                                    may_repeat ? "and the multiples " : "", "of ", *size));
  Note(problem, what, size);
}

void SizeChecks::Axis(const std::string& axis, const Located<int64_t>& size, int64_t most,
                      const LocatedNumbers& because) {
  if (*size <= most) return;
  failed_ = true;
  Diagnostic& problem =
      diagnostics_.Error(DiagnosticKind::kLayoutDoesNotDivide, size.where.known() ? size.where : module_.placement,
                         absl::StrCat(axis, " of module ", *module_.name, " is ", *size, ", and model ",
                                      *module_.model.name, " can have at most ", most),
                         absl::StrCat("use ", axis, most == 1 ? " " : " up to ", most));
  if (size.where.known()) problem.edits = {{"", absl::StrCat(most)}};
  for (const auto& [name, number] : because) {
    if (number.where.known()) problem.notes.push_back({number.where, absl::StrCat("`", name, "` asks for it here")});
  }
}

void SizeChecks::Multiple(const std::string& what, const Located<int64_t>& size, const std::string& of,
                          const Located<int64_t>& parts) {
  if (*parts >= 1 && *size % *parts == 0) return;
  if (of.empty()) {
    Shape(size, absl::StrCat(what, " is ", *size, ", which is not a multiple of ", *parts),
          absl::StrCat("make it a multiple of ", *parts));
    return;
  }
  Diagnostic& problem = Shape(size, absl::StrCat(what, " is ", *size, ", which is not a multiple of ", of, " ", *parts),
                              absl::StrCat("make ", what, " a multiple of ", of, ", or change ", of));
  Note(problem, of, parts);
}

void SizeChecks::AtMost(const std::string& what, const Located<int64_t>& size, const std::string& of,
                        const Located<int64_t>& most) {
  if (*size <= *most) return;
  Note(Shape(size, absl::StrCat(what, " is ", *size, ", but ", of, " is only ", *most),
             what.find(' ') == std::string::npos ? absl::StrCat("use at most ", *most) : "use smaller sizes"),
       of, most);
}

void SizeChecks::Within(const std::string& what, double count, const Located<int64_t>& at, double most) {
  if (count <= most) return;
  // a count above 64 bits is shown as 9e18
  const auto whole = [](double number) { return static_cast<int64_t>(std::min(number, 9e18)); };
  Shape(at, absl::StrCat(what, " must be at most ", whole(most), ", found ", whole(count)), "use smaller sizes");
}

Diagnostic& SizeChecks::Shape(const Located<int64_t>& at, std::string message, std::string help) {
  failed_ = true;
  return diagnostics_.Error(DiagnosticKind::kModelShape, at.where.known() ? at.where : module_.model.name.where,
                            absl::StrCat("model ", *module_.model.name, ": ", message), std::move(help));
}

void SizeChecks::MissingSection(const Location& pattern, const StatedLayer& layer, const std::string& section) {
  failed_ = true;
  const std::string letter(1, layer.letter);
  diagnostics_.Error(DiagnosticKind::kMissingModelSection, pattern,
                     absl::StrCat("the pattern has ", layer.word, " layers (", letter, "), but model ",
                                  *module_.model.name, " has no section `", section, "`"),
                     absl::StrCat("add `", section, "` to the model, or remove ", letter, " from the pattern"));
}

void SizeChecks::Note(Diagnostic& problem, const std::string& what, const Located<int64_t>& size) {
  failed_ = true;
  if (size.where.known()) problem.notes.push_back({size.where, absl::StrCat(what, " is ", *size, " here")});
}

}  // namespace planwright
