#include "planner/base/text/text.h"
#include "planner/cli/completion.h"

namespace planwright {
namespace {

// Functions that do not depend on the commands. bash splits words at `=`, so an override arrives in up to three pieces.
constexpr char kBashFunctions[] = R"bash(
_plan_files() {  # names that end in one of the further arguments, and folders
  local name suffix
  compopt -o filenames 2>/dev/null
  while IFS= read -r name; do
    if [[ -d $name ]]; then COMPREPLY+=("$name"); continue; fi
    for suffix in "${@:2}"; do
      if [[ $name == *"$suffix" ]]; then COMPREPLY+=("$name"); break; fi
    done
  done < <(compgen -f -- "$1")
}

_plan_offer() {  # words of $1 that start with $2
  local word
  for word in $1; do
    if [[ $word == "$2"* ]]; then COMPREPLY+=("$word"); fi
  done
}

_plan_keys() {  # overrides of recipe $1 that start with $2: "key="
  local line
  compopt -o nospace 2>/dev/null
  while IFS= read -r line; do
    if [[ ${line%%=*}= == "$2"* ]]; then COMPREPLY+=("${line%%=*}="); fi
  done < <("${COMP_WORDS[0]}" completion keys "$1" 2>/dev/null)
}

_plan_values() {  # values of key $2 of recipe $1 that start with $3
  local line
  while IFS= read -r line; do
    if [[ ${line%%=*} == "$2" ]]; then line=${line#*=}; _plan_offer "${line//|/ }" "$3"; fi
  done < <("${COMP_WORDS[0]}" completion keys "$1" 2>/dev/null)
}

_plan() {
  COMPREPLY=()
  local command=${COMP_WORDS[1]-} cur=${COMP_WORDS[COMP_CWORD]} options= values= words= kinds= key= i
  local -a given=()
  if ((COMP_CWORD == 1)); then _plan_offer "$_plan_commands --help --version" "$cur"; return; fi
  _plan_table "$command" || return
  # The words in front of the cursor, without options and overrides. `key`: the override or option whose value is being
  # written.
  for ((i = 2; i < COMP_CWORD; ++i)); do
    local word=${COMP_WORDS[i]}
    if [[ $word == '=' ]]; then
      key=${COMP_WORDS[i - 1]}
      ((i + 1 == COMP_CWORD)) && break
      ((++i))
      key=
    elif [[ $word == -* ]]; then
      if [[ " $values" == *" $word:"* && ${COMP_WORDS[i + 1]-} != '=' ]]; then
        if ((i + 1 == COMP_CWORD)); then key=$word; break; fi
        ((++i))
      fi
    elif [[ ${COMP_WORDS[i + 1]-} != '=' ]]; then
      given+=("$word")
    fi
  done
  if [[ $cur == '=' ]]; then key=${COMP_WORDS[COMP_CWORD - 1]} cur=; fi
  local recipe=${given[0]-} kind=${words:${#given[@]}:1}
  [[ $command == diff ]] && recipe=${given[${#given[@]} - 1]-}
  [[ $words == a* ]] && recipe=${given[1]-}
  if [[ $key == -* ]]; then
    local choices=${values#*"$key:"}
    choices=${choices%%;*}
    case $choices in
      file) _plan_files "$cur" '' ;;
      dir) COMPREPLY=($(compgen -d -- "$cur")) ;;
      *) _plan_offer "$choices" "$cur" ;;
    esac
  elif [[ -n $key ]]; then
    [[ $words == *+ ]] && _plan_values "$recipe" "$key" "$cur"
  elif [[ $cur == -* ]]; then
    _plan_offer "$options" "$cur"
  else
    case $kind in
      r) _plan_files "$cur" .yaml .yml .json ;;
      s) _plan_offer "$_plan_subjects" "$cur" ;;
      h) _plan_offer "bash zsh keys words" "$cur" ;;
      m) _plan_offer "$_plan_commands" "$cur" ;;
      c) _plan_offer "ls show verify" "$cur" ;;
      a) _plan_offer "index stats trace" "$cur" ;;
      d) COMPREPLY=($(compgen -d -- "$cur")) ;;
      f) _plan_files "$cur" '' ;;
      k) ;;
    esac
    [[ $words == k ]] && _plan_offer "$("${COMP_WORDS[0]}" completion words 2>/dev/null)" "$cur"
    [[ $words == *+ && -n $recipe && $kind != s && $recipe != *.json ]] && _plan_keys "$recipe" "$cur"
  fi
}

complete -F _plan plan
)bash";

// In single quotes for the shell.
std::string Quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

std::string BashCompletion(const std::vector<CliCommand>& commands) {
  std::string names, table = "_plan_table() {  # sets options, values and words of a command\n  case $1 in\n";
  for (const CompletionRow& row : CompletionRows(commands)) {
    names += (names.empty() ? "" : " ") + row.command;
    std::string options, values;
    for (const Option& option : row.options) {
      for (const std::string& name : {option.name, option.short_name}) {
        if (name.empty()) continue;
        options += (options.empty() ? "" : " ") + name;
        if (!option.value.empty()) values += name + ":" + ValueChoices(option) + "; ";
      }
    }
    table += Cat("    ", row.command, ") options=", Quoted(options), " values=", Quoted(values),
                 " words=", Quoted(row.words), " ;;\n");
  }
  table += "    *) return 1 ;;\n  esac\n}\n";
  std::string subjects;
  for (const std::string& subject : ShowSubjects()) subjects += (subjects.empty() ? "" : " ") + subject;
  return Cat(
      "# bash completion for `plan`, written by `plan completion bash`. Use it with: source <(plan completion "
      "bash)\n_plan_commands=",
      Quoted(names), "\n_plan_subjects=", Quoted(subjects), "\n\n", table, kBashFunctions);
}

}  // namespace planwright
