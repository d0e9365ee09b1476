#include "planner/exchange/logits/logits_text.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

std::string Short(double number) { return absl::StrFormat("%.2g", number); }

std::string Exact(double number) { return absl::StrFormat("%.6g", number); }

ComputedIn OursIn(const Plan& plan) { return ComputedInOf(plan.dtype()); }

std::string BothText(const LogitPair& pair) { return Cat(Exact(pair.ours), " ours, ", Exact(pair.theirs), " theirs"); }

// "sequence 1, position 17 (token 1234)"
std::string PlaceText(const LogitsPosition& at) {
  return Cat("sequence ", at.sequence, ", position ", at.position, " (token ", at.token, ")");
}

std::string WorstText(const LogitsPosition& worst) {
  std::string text = Cat("worst position: ", PlaceText(worst), "\n  logit of token ", worst.widest.id, ": ",
                         BothText(worst.widest), "\n");
  if (worst.ours_top.id == worst.theirs_top.id)
    return Cat(text, "  most likely token ", worst.ours_top.id, ": ", BothText(worst.ours_top), "\n");
  return Cat(text, "  most likely token of ours ", worst.ours_top.id, ": ", BothText(worst.ours_top),
             "\n  most likely token of theirs ", worst.theirs_top.id, ": ", BothText(worst.theirs_top), "\n");
}

std::string TableText(const LogitsComparison& comparison, size_t width) {
  Table table({"", "difference", ""});
  table.Add({"median position", Short(comparison.difference), "root mean square over its logits, of the spread"});
  table.Add({"worst position", Short(comparison.worst.difference), "the same"});
  table.Add({"worst logit", Short(comparison.largest), "of the spread"});
  table.Add({"mean of logits", Short(comparison.mean), "of the spread"});
  table.Add({"worst KL divergence", Short(comparison.kl_largest), "nats, of theirs from ours at a position"});
  table.Add({"mean KL divergence", Short(comparison.kl_mean), "nats"});
  if (comparison.ours_loss) {
    table.Add({"loss of next tokens", Short(std::abs(*comparison.ours_loss - *comparison.theirs_loss)),
               Cat(Exact(*comparison.ours_loss), " ours, ", Exact(*comparison.theirs_loss), " theirs")});
  }
  return Cat("the spread of their logits, a standard deviation, is ", Short(comparison.spread), "\n\n",
             table.Text("", width), "\nthe most likely token is the same at ", WithCommas(comparison.same_top), " of ",
             WithCommas(comparison.positions), " positions\n");
}

// What a difference points at. A sequence begins with a token that sees itself alone: there positions turn nothing, and
// attention is the value of this token whatever q and k are.
std::string HintText(const LogitsComparison& comparison) {
  if (comparison.difference <= comparison.tolerance) {
    return "Most positions agree. With experts, rounding may have chosen another one for a token that two of them suit "
           "alike; else look at what only these positions have: rows of the embedding, a window.";
  }
  if (comparison.at_begin <= comparison.tolerance) {
    return "The first tokens of sequences agree. So it is about how a token sees earlier ones: positions (RoPE), q and "
           "k, the order of heads, a window, Mamba's states.";
  }
  return "Already the first tokens of sequences differ, which see themselves alone. So it is not, or not only, about "
         "positions, q and k: look at embedding, norms and their epsilon, v and output of attention, MLPs, experts.";
}

// The modules that the tokens do not run: without an image no encoder has work.
std::vector<std::string> EncodersOf(const Plan& plan) {
  std::vector<std::string> names;
  for (const Module& module : plan.modules) {
    if (module.has_images) names.push_back(module.name);
  }
  return names;
}

// Whether some sequence has two different tokens. Where all are the same, attention is the value of this token,
// whatever positions, q and k are.
bool ShowsPositions(const ReferenceLogits& theirs) {
  for (int64_t i = 0; i < theirs.sequences(); ++i) {
    const std::vector<int64_t>& tokens = theirs.tokens(i);
    if (std::adjacent_find(tokens.begin(), tokens.end(), std::not_equal_to<>()) != tokens.end()) return true;
  }
  return false;
}

std::vector<std::string> NotCompared(const ReferenceLogits& theirs, const Plan& plan) {
  std::vector<std::string> names = EncodersOf(plan);
  if (!ShowsPositions(theirs)) names.push_back("positions");
  return names;
}

// "the same model.", or what of it is the same.
std::string SameText(const ReferenceLogits& theirs, const Plan& plan) {
  const std::vector<std::string> encoders = EncodersOf(plan);
  const bool positions = ShowsPositions(theirs);
  std::string text = positions ? "the same" : "as far as single tokens show, the same";
  Append(text, encoders.empty() ? " model" : " language model");
  if (!encoders.empty()) {
    Append(text, "; the ", encoders.size() > 1 ? "encoders (" : "encoder (", absl::StrJoin(encoders, ", "),
           encoders.size() > 1 ? ") are" : ") is", " not compared, as the tokens have no images");
  }
  if (!positions) {
    Append(text,
           "; how a token sees earlier ones (positions, q and k) is not compared, as no sequence has two different "
           "tokens");
  }
  return Cat(text, ".");
}

std::string VerdictText(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison) {
  if (!comparison.finite) {
    return Cat("not the same model. At ", PlaceText(comparison.worst), " our logit of token ",
               comparison.worst.widest.id, " is ", Exact(comparison.worst.widest.ours), ", theirs is ",
               Exact(comparison.worst.widest.theirs), ".");
  }
  const std::string single = Short(kOfOnePosition * comparison.tolerance);
  return Cat(comparison.good() ? SameText(theirs, plan) : "not the same model.", " The median position differs by ",
             Short(comparison.difference), ", ", comparison.beyond > 0 ? WithCommas(comparison.beyond) : "none", " of ",
             WithCommas(comparison.positions), " by more than ", single, ". ", Short(comparison.tolerance), " and ",
             single, " are allowed (", ComputedInName(OursIn(plan)), " beside ", ComputedInName(theirs.computed_in()),
             ").");
}

// After a verdict, a line for each thing to look at.
std::string HintsText(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison,
                      size_t width) {
  if (comparison.good() || !comparison.finite) return "";
  std::string text = Cat(Wrapped(HintText(comparison), width), "\n");
  if (std::max(OursIn(plan), theirs.computed_in()) <= ComputedIn::kFp32) return text;
  return Cat(
      text,
      Wrapped("To tell rounding from another model, compare in fp32: precision.params=fp32, and logits that were "
              "computed in fp32.",
              width),
      "\n");
}

nlohmann::ordered_json JsonOf(const LogitPair& pair) {
  const auto number = [](double value) {
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  return {{"token", pair.id}, {"ours", number(pair.ours)}, {"theirs", number(pair.theirs)}};
}

}  // namespace

std::string LogitsText(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison,
                       size_t width) {
  std::string text = Cat("theirs: ", Printable(theirs.path()), ", ", Counted(theirs.sequences(), "sequence"), ", ",
                         Counted(theirs.positions(), "token"), ", ", ComputedInName(theirs.computed_in()),
                         theirs.said().empty() ? "" : Cat(", by ", theirs.said()), "\n");
  Append(text, "ours: ", plan.precision, " on ", Counted(plan.world_size, "rank"), ", sequences of ",
         WithCommas(plan.budget.sequence_length), "\n\n");
  if (comparison.finite) Append(text, TableText(comparison, width), "\n", WorstText(comparison.worst), "\n");
  return Cat(text, Wrapped(Cat("verdict: ", VerdictText(theirs, plan, comparison)), width), "\n",
             HintsText(theirs, plan, comparison, width));
}

nlohmann::ordered_json LogitsJson(const ReferenceLogits& theirs, const Plan& plan, const LogitsComparison& comparison) {
  nlohmann::ordered_json json = {
      {"same", comparison.good()},
      {"not_compared", NotCompared(theirs, plan)},
      {"tolerance", comparison.tolerance},
      {"file", theirs.path()},
      {"by", theirs.said()},
      {"computed_in", {{"ours", ComputedInName(OursIn(plan))}, {"theirs", ComputedInName(theirs.computed_in())}}},
      {"sequences", theirs.sequences()},
      {"sequence_length", plan.budget.sequence_length},
      {"finite", comparison.finite}};
  if (comparison.finite) {
    json["positions"] = comparison.positions, json["beyond"] = comparison.beyond;
    json["same_most_likely"] = comparison.same_top;
    json["spread"] = comparison.spread;
    json["difference"] = comparison.difference, json["difference_at_begin"] = comparison.at_begin;
    json["worst_difference"] = comparison.worst.difference;
    json["largest"] = comparison.largest, json["mean"] = comparison.mean;
    json["kl_largest"] = comparison.kl_largest, json["kl_mean"] = comparison.kl_mean;
    if (comparison.ours_loss) json["loss"] = {{"ours", *comparison.ours_loss}, {"theirs", *comparison.theirs_loss}};
  }
  const LogitsPosition& worst = comparison.worst;
  json["worst"] = {{"sequence", worst.sequence},
                   {"position", worst.position},
                   {"token", worst.token},
                   {"logit", JsonOf(worst.widest)}};
  if (comparison.finite)
    json["worst"]["ours_most_likely"] = JsonOf(worst.ours_top),
    json["worst"]["theirs_most_likely"] = JsonOf(worst.theirs_top);
  return json;
}

}  // namespace planwright
