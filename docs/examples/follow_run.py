#!/usr/bin/env python3
"""Feeds the stream of a run (docs/run_reports.md#stream) to Weights & Biases, to MLflow, or to the terminal.

    plan status RUN --follow --json | python3 docs/examples/follow_run.py wandb [PROJECT]
    plan status RUN --follow --json | python3 docs/examples/follow_run.py mlflow [EXPERIMENT]
    plan status RUN --follow --json | python3 docs/examples/follow_run.py plain

Without a network: WANDB_MODE=offline, and MLFLOW_TRACKING_URI=sqlite:///mlflow.db. Steps that a later life did again
are passed over: they have the same numbers. A follower that is started again gets all events again, goes on with the
run of the tracker that is there, and logs nothing twice.
"""

import json
import sys


class Plain:
    def __init__(self, project, run):
        print(f"begin {run['name']} as {run['run_id']}, {run['steps']} steps on {run['ranks']} ranks", flush=True)

    def log(self, step, numbers):
        print(f"{step} " + " ".join(f"{name}={value:.6g}" for name, value in numbers.items()), flush=True)

    def end(self, good, why):
        print(f"end: {'good' if good else 'failed'}, {why}", flush=True)


class Wandb:
    def __init__(self, project, run):
        import wandb

        # The identity of the run: who is started again goes on with the same one, which takes no step that it has.
        self.run = wandb.init(project=project, id=run["run_id"], name=run["name"], config=run, resume="allow")

    def log(self, step, numbers):
        self.run.log(numbers, step=step)

    def end(self, good, why):
        self.run.summary["ended"] = why
        self.run.finish(exit_code=0 if good else 1)


class Mlflow:
    def __init__(self, project, run):
        import mlflow

        self.mlflow = mlflow
        experiment = mlflow.set_experiment(project)
        tag = f"tags.`planwright.run_id` = '{run['run_id']}'"
        known = mlflow.search_runs([experiment.experiment_id], tag, output_format="list")
        self.run = mlflow.start_run(known[0].info.run_id if known else None, run_name=run["name"],
                                    tags={"planwright.run_id": run["run_id"]})
        mlflow.log_params({name: run[name] for name in ("ranks", "steps", "global_samples", "sequence_length")})
        self.last = {}  # of each name, the last step that was logged: MLflow would keep it twice

    def log(self, step, numbers):
        for name in numbers.keys() - self.last.keys():
            history = self.mlflow.MlflowClient().get_metric_history(self.run.info.run_id, name)
            self.last[name] = max((one.step for one in history), default=-1)
        new = {name: value for name, value in numbers.items() if step > self.last[name]}
        if new:
            self.mlflow.log_metrics(new, step=step)
            self.last |= dict.fromkeys(new, step)

    def end(self, good, why):
        self.mlflow.set_tag("planwright.ended", why)
        self.mlflow.end_run("FINISHED" if good else "FAILED")


def numbers_of(event):
    if event["event"] == "evaluation":
        named = {f"evaluation/{name}": one["loss"] for name, one in event["evaluation"].items()}
    else:
        named = {name: event.get(name) for name in ("loss", "grad_norm", "learning_rate", "step_seconds", "aux_loss")}
        named |= {f"loss/{source}": loss for source, loss in event.get("source_loss", {}).items()}
        named["tokens_per_second_per_rank"] = event["pace"]["tokens_per_second_per_rank"]
    return {name: value for name, value in named.items() if value is not None}


def main(kind, project="planwright"):
    follower = None
    for line in sys.stdin:
        event = json.loads(line)
        if event["event"] == "run":
            follower = {"plain": Plain, "wandb": Wandb, "mlflow": Mlflow}[kind](project, event)
        elif event["event"] in ("step", "evaluation") and not event["again"]:
            follower.log(event["step"], numbers_of(event))
        elif event["event"] == "outcome" and follower is not None:
            follower.end(event["exit_status"] == 0, event.get("cause", event["state"]))


if __name__ == "__main__":
    main(*sys.argv[1:])
