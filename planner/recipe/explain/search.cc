#include "planner/recipe/explain/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/recipe/field_words.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {
namespace {

// What a word of another program counts beside our own.
constexpr double kOfOthers = 0.4;

// Words of a question that say nothing of what is asked for.
constexpr std::string_view kIdleWords[] = {
    "a",    "an",   "and",  "are",  "as",   "at",    "be",    "by",     "can",  "do",   "does", "for",   "from",
    "get",  "give", "has",  "how",  "i",    "if",    "in",    "is",     "it",   "its",  "make", "many",  "me",
    "mean", "much", "my",   "of",   "on",   "or",    "set",   "should", "so",   "that", "the",  "there", "this",
    "to",   "use",  "want", "what", "when", "where", "which", "why",    "with", "you",  "key",  "here",  "two"};
// Other words for what texts here call so.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {{"oom", "memory"},
                                                                         {"ram", "memory"},
                                                                         {"vram", "memory"},
                                                                         {"hang", "hung"},
                                                                         {"hangs", "hung"},
                                                                         {"stuck", "hung"},
                                                                         {"restart", "resume"},
                                                                         {"crash", "killed"},
                                                                         {"validation", "evaluation"},
                                                                         {"eval", "evaluation"},
                                                                         {"slow", "time"},
                                                                         {"speed", "time"},
                                                                         {"lr", "learning"},
                                                                         {"gpus", "gpu"},
                                                                         {"ckpt", "checkpoint"},
                                                                         {"batchsize", "batch"},
                                                                         {"nan", "finite"},
                                                                         {"inf", "finite"},
                                                                         {"vision", "encoder"},
                                                                         {"image", "images"},
                                                                         {"freeze", "frozen"},
                                                                         {"freezing", "frozen"},
                                                                         {"huggingface", "hugging"},
                                                                         {"tensorparallel", "tensor"},
                                                                         {"shape", "sizes"}};
// "steps" and "step", "frozen" and "freeze" stay apart, but plurals do not.
std::string Stem(std::string word) {
  for (const std::string_view ending : {"ing", "es", "s"}) {
    if (word.size() > ending.size() + 3 && word.ends_with(ending) && !word.ends_with("ss"))
      return word.substr(0, word.size() - ending.size());
  }
  if (word.size() > 4 && word.ends_with("e")) word.pop_back();
  return word;
}

// The words of a text, in lower case, without endings. "micro_samples" is "micro" and "sample".
std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end = [&] {
    if (!word.empty()) words.push_back(Stem(word));
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!absl::ascii_isalnum(c)) {
      end();
      continue;
    }
    // GridDoesNotFit is four words, NaN is one.
    if (absl::ascii_isupper(c) && i > 0 && absl::ascii_islower(text[i - 1]) && i + 1 < text.size() &&
        absl::ascii_islower(text[i + 1]))
      end();
    word += absl::ascii_tolower(c);
  }
  end();
  return words;
}

// What names have in common that are written in other ways: lower-case letters and digits. "--micro-batch-size" and
// "MicroBatchSize" are "microbatchsize", "learning rate peak" is learning_rate.peak.
std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (absl::ascii_isalnum(c) || c == '<') plain += absl::ascii_tolower(c);
  }
  return plain;
}

struct Indexed {
  std::set<std::string> names, summary, body;  // words
};

Indexed IndexOf(const Subject& subject) {
  Indexed index;
  const auto add = [](std::set<std::string>& to, std::string_view text) {
    for (std::string& word : WordsOf(text)) to.insert(std::move(word));
  };
  add(index.names, subject.name);
  for (const std::string& name : subject.names) add(index.names, name);
  add(index.summary, subject.summary);
  add(index.body, subject.body);
  return index;
}

double Score(const Indexed& index, const std::string& word) {
  if (index.names.contains(word)) return 5;
  if (index.summary.contains(word)) return 3;
  if (index.body.contains(word)) return 1;
  return 0;
}

// The nearest word of a name, for one that no text has. Short words are near too many.
std::string Mended(const std::string& word, const std::vector<Indexed>& indices) {
  std::set<std::string> known;
  for (const Indexed& index : indices) known.insert(index.names.begin(), index.names.end());
  if (word.size() < 4) return word;
  std::erase_if(known, [](const std::string& name) { return name.size() < 4; });
  return NearName(word, {known.begin(), known.end()}).value_or(word);
}

}  // namespace

std::vector<const Subject*> FindByName(std::string_view name, const std::vector<Subject>& subjects) {
  std::vector<const Subject*> found;
  const std::string plain = Plain(name);
  const auto same = [&](const std::string& other) { return other.size() == 1 ? other == name : Plain(other) == plain; };
  if (plain.empty() && name.size() != 1) return found;
  for (const Subject& subject : subjects) {
    if (same(subject.name) || std::any_of(subject.names.begin(), subject.names.end(), same)) found.push_back(&subject);
  }
  // `data_path` of another program is not data.path.
  const bool of_others = std::any_of(found.begin(), found.end(), [&](const Subject* one) {
    return one->type == SubjectType::kFieldWord && name.find('.') == std::string_view::npos &&
           Plain(one->name) == plain;
  });
  if (of_others) {
    std::erase_if(found, [&](const Subject* one) {
      return one->type == SubjectType::kKey && one->name != name && Plain(one->name) == plain;
    });
  }
  if (found.empty() && name.size() > 3 && name.ends_with('s'))
    return FindByName(name.substr(0, name.size() - 1), subjects);
  return found;
}

std::vector<const Subject*> FindInOtherMaps(std::string_view path, const std::vector<Subject>& subjects) {
  std::vector<const Subject*> found;
  if (path.find('.') == std::string_view::npos || path.size() > kLongestQuestion) return found;
  const FieldWord* word = FindFieldWord(path);
  while (path.starts_with('-')) path.remove_prefix(1);
  // A path of a recipe that is wrong stays unknown.
  const bool ours = FindKey("", path.substr(0, path.find('.')), "") != nullptr;
  for (const Subject& subject : subjects) {
    const bool of_list = subject.name.find("[]") != std::string::npos;
    const bool meant = word != nullptr ? subject.type == SubjectType::kFieldWord && subject.name == word->word
                                       : !ours && !of_list && subject.type == SubjectType::kKey &&
                                             subject.name.ends_with(Cat(".", path.substr(path.rfind('.') + 1)));
    if (meant) found.push_back(&subject);
  }
  return found;
}

std::vector<const Subject*> Search(std::string_view question, const std::vector<Subject>& subjects, size_t most) {
  if (question.size() > kLongestQuestion) return {};
  std::vector<Indexed> indices;
  indices.reserve(subjects.size());
  for (const Subject& subject : subjects) indices.push_back(IndexOf(subject));
  std::map<std::string, double> weights;
  for (const std::string& asked : WordsOf(question)) {
    const auto is = [&](std::string_view known) { return Stem(std::string(known)) == asked; };
    if (std::any_of(std::begin(kIdleWords), std::end(kIdleWords), is)) continue;
    const auto other = std::find_if(std::begin(kOtherWords), std::end(kOtherWords),
                                    [&](const auto& known) { return is(known.first); });
    std::string word = other == std::end(kOtherWords) ? asked : Stem(std::string(other->second));
    const auto count = [&] {
      return std::count_if(indices.begin(), indices.end(),
                           [&](const Indexed& index) { return Score(index, word) > 0; });
    };
    if (count() == 0) word = Mended(word, indices);
    // How rare a word is, our own texts say: those of other programs' words are many and alike.
    double own = 0, times = 0;
    for (size_t i = 0; i < subjects.size(); ++i) {
      if (subjects[i].type == SubjectType::kFieldWord) continue;
      ++own;
      times += Score(indices[i], word) > 0;
    }
    if (count() > 0) weights[word] = std::log(1 + own / std::max(1.0, times));
  }
  std::vector<std::pair<double, const Subject*>> found;
  double all = 0;
  for (const auto& [word, weight] : weights) all += weight;
  for (size_t i = 0; i < subjects.size(); ++i) {
    double score = 0, covered = 0;
    for (const auto& [word, weight] : weights) {
      const double here = Score(indices[i], word);
      score += here * weight;
      if (here > 0) covered += weight;
    }
    if (subjects[i].type == SubjectType::kFieldWord) score *= kOfOthers;
    // Texts that have all words of the question come before those that have one of them often.
    if (score > 0) found.emplace_back(score * covered / all, &subjects[i]);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const Subject*> best;
  for (const auto& [score, subject] : found) {
    if (best.size() == most || score < found[0].first * 0.3) break;
    best.push_back(subject);
  }
  return best;
}

std::optional<std::string> NearSubject(std::string_view name, const std::vector<Subject>& subjects) {
  if (name.size() > kLongestQuestion) return std::nullopt;
  std::vector<std::string> names;
  for (const Subject& subject : subjects) {
    for (const std::string& other : subject.names) names.push_back(other);
    names.push_back(subject.name);
  }
  std::erase_if(names, [](const std::string& other) { return other.size() < 3; });
  return NearName(name, names);
}

}  // namespace planwright
