#include "planner/base/text/text.h"
#include "planner/cli/completion.h"

namespace planwright {
namespace {

constexpr char kZshFunctions[] = R"zsh(
_plan_keys() {  # overrides of recipe $1, or the values of the one at the cursor
  local line key=${PREFIX%%=*}
  local -a keys=() values=()
  for line in ${(f)"$("$words[1]" completion keys "$1" 2>/dev/null)"}; do
    keys+=("${line%%=*}=")
    if [[ $PREFIX == *=* && ${line%%=*} == $key ]]; then values=(${(s:|:)line#*=}); fi
  done
  if [[ $PREFIX == *=* ]]; then
    compadd -P "$key=" -- $values
  else
    compadd -S '' -- $keys
  fi
}

_plan() {
  local command=$words[2] word
  local -a commands options given
  local -A values
  local kinds_of_words
  commands=("${_plan_commands[@]}")
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  _plan_table $command || return
  local -i i
  for (( i = 3; i < CURRENT; ++i )); do
    word=$words[i]
    if [[ -n ${values[$word]+there} ]]; then
      if (( i + 1 == CURRENT )); then
        case $values[$word] in
          file) _files ;;
          dir) _files -/ ;;
          *) compadd -- ${=values[$word]} ;;
        esac
        return
      fi
      (( ++i ))
    elif [[ $word != -* && $word != *=* ]]; then
      given+=("$word")
    fi
  done
  if [[ $words[CURRENT] == -* ]]; then
    _describe option options
    return
  fi
  local recipe=${given[1]-} kind=${kinds_of_words:${#given}:1}
  [[ $command == diff ]] && recipe=${given[-1]-}
  [[ $kinds_of_words == a* ]] && recipe=${given[2]-}
  case $kind in
    r) _files -g '*.(yaml|yml|json)(-.)' ;;
    s) compadd -- ${=_plan_subjects} ;;
    h) compadd -- bash zsh keys words ;;
    m) compadd -- ${_plan_commands%%:*} ;;
    c) compadd -- ls show verify ;;
    a) compadd -- index stats trace ;;
    d) _files -/ ;;
    f) _files ;;
  esac
  [[ $kinds_of_words == k ]] && compadd -- ${(f)"$("$words[1]" completion words 2>/dev/null)"}
  if [[ $kinds_of_words == *+ && -n $recipe && $kind != s && $recipe != *.json ]]; then _plan_keys "$recipe"; fi
}

compdef _plan plan
)zsh";

// In single quotes; `:` parts a word from what it means.
std::string Described(const std::string& word, const std::string& meaning) {
  std::string quoted = "'" + word + ":";
  for (const char c : meaning) {
    if (c == '\'')
      quoted += "'\\''";
    else if (c == ':' || c == '\\')
      quoted += std::string("\\") + c;
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace

std::string ZshCompletion(const std::vector<CliCommand>& commands) {
  std::string names, table = "_plan_table() {  # sets options, values and kinds_of_words of a command\n  case $1 in\n";
  for (const CompletionRow& row : CompletionRows(commands)) {
    names += "  " + Described(row.command, row.summary) + "\n";
    std::string options, values;
    for (const Option& option : row.options) {
      for (const std::string& name : {option.name, option.short_name}) {
        if (name.empty()) continue;
        options += " " + Described(name, option.help);
        if (!option.value.empty()) values += Cat(" '", name, "' '", ValueChoices(option), "'");
      }
    }
    table += Cat("    ", row.command, ")\n      options=(", options, " )\n      values=(", values,
                 " )\n      kinds_of_words='", row.words, "'\n      ;;\n");
  }
  table += "    *) return 1 ;;\n  esac\n}\n";
  std::string subjects;
  for (const std::string& subject : ShowSubjects()) subjects += (subjects.empty() ? "" : " ") + subject;
  return Cat(
      "#compdef plan\n# zsh completion for `plan`, written by `plan completion zsh`. Use it with: source <(plan "
      "completion zsh)\n",
      "typeset -ga _plan_commands=(\n", names, ")\ntypeset -g _plan_subjects='", subjects, "'\n\n", table,
      kZshFunctions);
}

}  // namespace planwright
