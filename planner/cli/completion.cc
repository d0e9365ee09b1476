#include "planner/cli/completion.h"

namespace planwright {

// bash parts words at `=`, and completes what is behind it.
constexpr std::string_view kBashCompletion =
    R"bash(# bash completion for `plan`, written by `plan completion bash`. Use it with: source <(plan completion bash)
_plan() {
  local line name ends cur=${COMP_WORDS[COMP_CWORD]#=}
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :nospace) compopt -o nospace 2>/dev/null ;;
      :files*)
        compopt -o filenames 2>/dev/null
        ends=${line#:files}
        while IFS= read -r name; do
          if [[ -d $name || -z $ends || "$ends " == *" .${name##*.} "* ]]; then COMPREPLY+=("$name"); fi
        done < <(compgen -f -- "$cur") ;;
      *) COMPREPLY+=("${line%%$'\t'*}") ;;
    esac
  done < <("${COMP_WORDS[0]}" complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _plan plan
)bash";

constexpr std::string_view kZshCompletion = R"zsh(#compdef plan
# zsh completion for `plan`, written by `plan completion zsh`. Use it with: source <(plan completion zsh)
_plan() {
  local line
  local -a found options
  if [[ $PREFIX == *=* ]]; then options=(-P "${PREFIX%%=*}="); fi
  for line in "${(@f)$("$words[1]" complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :nospace) options+=(-S '') ;;
      :files) _files ;;
      ':files /') _files -/ ;;
      :files*) _files -g "*(${(j:|:)${=line#:files}})(-.)" ;;
      *) found+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  if (( $#found )); then _describe plan found "${(@)options}"; fi
}
compdef _plan plan
)zsh";

}  // namespace planwright
