"""Commands: functions whose parameters are options, and whose docstrings are the help.

What a command needs beside Typer, NumPy and scikit-learn among it, is imported when it runs: help needs none of it.
"""

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import typer

import spectralgp
from spectralgp.cli import option
from spectralgp.cli.app import Answer, check_outputs, command

COMPARED = "identity,regularized-laplacian,diffusion,matern,polynomial:2,polynomial:auto,auto"
DEFAULT_LEVEL = 0.9


@command("Learn a model from a graph and signals, and save it.")
def fit(
    out: Annotated[Path, option.new_file("File for the model.", metavar="MODEL")],
    signals: Annotated[Path | None, option.file(option.SIGNALS)] = None,
    classes: Annotated[
        Path | None,
        option.file(
            "Instead of signals, classes of some nodes: a table of node and class. --inputs FILE is then a table of "
            "node and features."
        ),
    ] = None,
    season: Annotated[
        list[str] | None,
        option.model(
            "Learn a time series, for `forecast` and `update`: a seasonal period in rows, or auto. May be repeated. "
            "Needs --inputs time.",
            metavar="N|auto",
        ),
    ] = None,
    kernel: Annotated[
        str,
        option.model(
            "Graph kernel by name, such as diffusion, matern:2.5 or polynomial:3; auto compares several models and "
            "stacks them. An unknown name is answered with a list of all.",
            metavar="NAME",
        ),
    ] = option.AUTO,
    degree: Annotated[
        str | None, option.model("Degree of the polynomial: a number, or auto.", metavar="N|auto")
    ] = None,
    device: Annotated[Literal["cpu", "cuda"] | None, option.model("Device for large graphs.")] = None,
    likelihood: Annotated[
        str,
        option.model("Likelihood of the values, such as poisson for counts or student_t for outliers.", metavar="NAME"),
    ] = "gaussian",
    force: option.Force = False,
    *,
    learning: option.LearningOptions,
    observing: option.ObservationOptions,
    table: option.TableOptions,
) -> Answer:
    r"""Learn a model from a graph and signals, or classes of some nodes, in files, and save it.

    Empty cells are missing values. Nodes are matched by name across files.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp
    """
    from spectralgp.cli import files
    from spectralgp.cli.learning import classifier_of, forecaster_of, kernel_named, learnt, regressor_of, with_degree

    check_outputs(out, force=force)
    graph_kernel = kernel_named(with_degree(kernel, degree))
    path = classes if signals is None else signals
    if path is None or None not in (signals, classes):
        got = "neither" if path is None else "both"
        raise typer.BadParameter(f"one of --signals and --classes must be given; got {got}.")
    data, beside, evidence = None, dict[str, Any](), ""
    model: Any
    if signals is None:
        left: dict[str, Any] = {"--kernel": graph_kernel, "--season": season, "--exposure": observing.exposure}
        left |= {"--trials": observing.trials, "--device": device}
        left |= {"--likelihood": None if likelihood == "gaussian" else likelihood}
        typed = [name for name, value in left.items() if value]
        if typed:
            raise typer.BadParameter(f"{typed[0]} must be left out with --classes, which has no such option.")
        model, given = classifier_of(path, learning)
    else:
        data = files.read_data(path, learning, table)
        if season:
            model, given = forecaster_of(data, season, graph_kernel, learning.inputs)
        else:
            model, given = regressor_of(data, graph_kernel, learning, device, likelihood)
            beside = files.auxiliary_data(vars(observing), table, data.graph, data.signals.index)
    start = perf_counter()
    with files.naming_file(path):
        model.fit(*given, **beside)
    seconds = perf_counter() - start
    if isinstance(model, spectralgp.GraphGPRegressor) and data is not None:
        model.input_recipe_, evidence = data.recipe, f"Log evidence {model.log_marginal_likelihood_:.2f} nats; "
    model.save(out)
    known = {"model": out, "n_nodes": model.graph_.n_nodes, "n_edges": model.graph_.n_edges}
    said = f"{model.summary().rstrip()}\n\n{evidence}{seconds:.1f} s.\nSaved as {out}."
    return {**known, **learnt(model, data), "seconds": seconds}, said


@command("Predict signals, with intervals.")
def predict(
    model: option.ModelFile,
    output: option.OutputOptions,
    signals: Annotated[
        Path | None, option.other_file("Last signals, for a model with lag:1: the signal after each row is predicted.")
    ] = None,
    inputs: Annotated[
        list[str] | None,
        option.plain(
            "Table of new inputs with the columns of the fit, or of times; lag:1 or time if the model's file does not "
            "record how its inputs were made.",
            metavar="FILE|lag:N|time",
        ),
    ] = None,
    at: Annotated[
        list[str] | None, option.plain("Time to predict, for a model of time; may be repeated.", metavar="TIME")
    ] = None,
    observed: Annotated[
        Path | None,
        option.other_file(
            "Known values of the predicted signals themselves, with the same labels; empty cells are predicted."
        ),
    ] = None,
    observed_exposure: Annotated[
        str | None,
        option.data(
            "Exposures, or trials, of --observed, unless the model was fitted to these signals.", metavar="TABLE"
        ),
    ] = None,
    *,
    observing: option.ObservationOptions,
    table: option.TableOptions,
) -> Answer:
    r"""Predict signals, with intervals or standard deviations (noise included).

    The table has the separators, decimal commas and dates of the given files. A model of classes predicts the class of
    every node, with the probability of each class in a column.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp predict model.sgp --signals files/later.csv \
        --level 0.9 --out predicted.csv
    """
    from spectralgp.cli import answers, files

    _check_output(output)
    found = spectralgp.load(model)
    if isinstance(found, spectralgp.GraphGPClassifier):
        beside = (observing.exposure, observing.trials, output.std, output.level, output.long)
        if any((signals, inputs, at, observed, *beside)) or not found._alignment.form.is_flat:
            raise typer.BadParameter("a model of classes of nodes must be given --out alone; got more options.")
        return answers.written_classes(found, output.out)
    fitted = files.signal_model(found, model)
    new = answers.inputs_to_predict(fitted, signals, inputs, at, observed, table)
    typed = vars(observing) | {"observed_exposure": observed_exposure}
    options = files.auxiliary_data(typed, table, fitted.graph_, None if new is None else new.index)
    known = None
    if observed is not None:
        known = answers.matched_observations(files.signal_table(observed, fitted.graph_, table), new, observed)
    fitted.set_output(predict="pandas")
    # quantiles of counts and the like: mean and standard deviation do not give their intervals
    if output.level is not None and hasattr(fitted, "likelihood_"):
        options["return_quantiles"] = 0.5 * (1 - output.level), 0.5 * (1 + output.level)
    mean, deviation, *ends = fitted.predict(new, return_std=True, include_noise=True, observed=known, **options)
    dialect = files.dialect_for(table.date_format, signals, observed, files.input_parts(inputs).table)
    return answers.written(output, mean, deviation, dialect, "Predicted", ends)


@command("Impute missing values, with intervals.")
def impute(
    model: option.ModelFile,
    signals: option.SignalsFile,
    output: option.OutputOptions,
    inputs: option.Inputs = None,
    *,
    observing: option.ObservationOptions,
    table: option.TableOptions,
) -> Answer:
    r"""Impute missing values (empty cells). Observed values are kept, with standard deviation zero.

    The table has the separators, decimal commas and dates of the file of the signals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/missing.csv \
        --inputs time --out missing.sgp
      spectralgp impute missing.sgp --signals files/missing.csv \
        --level 0.9 --out filled.csv
    """
    from spectralgp.cli import answers, files

    _check_output(output)
    fitted, data, beside = files.model_and_data(model, signals, inputs, table, observing)
    with files.naming_file(signals):
        values, deviation = fitted.impute(data.inputs, data.signals, **beside)
    n_imputed = int(data.signals.isna().to_numpy().sum())
    dialect = files.dialect_for(table.date_format, signals)
    return answers.written(output, values, deviation, dialect, f"Imputed {n_imputed} values of", n_imputed=n_imputed)


@command("Score predictions of held-out signals.")
def score(
    model: option.ModelFile,
    signals: option.SignalsFile,
    inputs: option.Inputs = None,
    level: Annotated[float, option.share("Probability of the intervals whose coverage is measured.")] = 0.9,
    *,
    observing: option.ObservationOptions,
    table: option.TableOptions,
) -> Answer:
    """Score predictions of held-out signals; says if some are training signals. Missing values are skipped.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp score model.sgp --signals files/later.csv
    """
    from spectralgp.cli import answers, files

    fitted, data, beside = files.model_and_data(model, signals, inputs, table, observing)
    with files.naming_file(signals):
        return answers.model_scores(fitted, data, model.name, level, beside)


@command("Compare graph kernels with each other and with baselines.")
def compare(
    signals: option.SignalsFile,
    kernels: Annotated[
        str,
        option.model(
            f"Kernels to compare, separated by commas ({COMPARED.replace(',', ', ')}).",
            show_default=False,
            metavar="NAMES",
        ),
    ] = COMPARED,
    held_out: Annotated[
        float, option.model("Share of the signals, the last rows, to hold out.", min=0.01, max=0.9)
    ] = 0.2,
    *,
    learning: option.LearningOptions,
    table: option.TableOptions,
) -> Answer:
    r"""Compare graph kernels with each other and with baselines.

    Each is learnt from the first rows and scored on the last. Baselines are node means, no change (with lag:1: the
    previous row), ridge regression and, for missing values, neighbours on the graph and the iterative imputer. A
    baseline that is better than the learnt models is named first.

    Example (the files are those of `spectralgp example`):
      spectralgp compare --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --kernels identity,diffusion,polynomial:2
    """
    from spectralgp.cli import files
    from spectralgp.cli.learning import compared, kernel_named

    named = {name: kernel_named(name) for name in map(str.strip, kernels.split(",")) if name}
    data = files.read_data(signals, learning, table)
    n_held_out = max(round(held_out * len(data.signals)), 1)
    if len(data.signals) - n_held_out < 2:
        raise ValueError(
            f"{signals} must have at least 2 signals beside those held out, {n_held_out}; got {len(data.signals)}. "
            "Add rows."
        )
    return compared(named, data, n_held_out, learning)


@command("Forecast the next rows of a time series.")
def forecast(
    model: option.ModelFile,
    out: Annotated[Path, option.new_file("Table to write, CSV or Parquet.")],
    steps: Annotated[int, option.plain("Number of rows to forecast.", min=1)] = 1,
    std: option.Table = None,
    lower: option.Table = None,
    upper: option.Table = None,
    level: Annotated[
        float | None,
        option.share(
            "Probability of the interval of --lower and --upper (0.9); without these two its ends are written beside "
            "each node (NODE lower, NODE upper), rounded."
        ),
    ] = None,
    inputs: Annotated[Path | None, option.other_file("Covariates of the fit beside time, one row per step.")] = None,
    date_format: option.DateFormat = None,
    force: option.Force = False,
) -> Answer:
    r"""Forecast the next rows of a time series, with intervals.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp forecast series.sgp --steps 3 --level 0.9 --out forecast.csv
    """
    from spectralgp.cli import files
    from spectralgp.files.tables import side_by_side, with_intervals, write_tables
    from spectralgp.scores import interval_half_width

    check_outputs(out, std, lower, upper, force=force)
    fitted = spectralgp.load(model)
    if not isinstance(fitted, spectralgp.GraphGPForecaster):
        raise ValueError(
            f"{model} must hold a series, as `spectralgp fit --inputs time --season auto` saves it; got a model of "
            "signals or classes. Use `spectralgp predict`."
        )
    fitted.set_output(predict="pandas")
    mean, deviation = fitted.predict(steps, return_std=True, X=files.exogenous(fitted, inputs, date_format))
    half = interval_half_width(deviation.to_numpy(), level or DEFAULT_LEVEL)
    is_beside = level is not None and lower is None and upper is None
    answer = side_by_side(with_intervals(mean, deviation, level or DEFAULT_LEVEL)) if is_beside else mean
    tables = {out: answer, std: deviation, lower: mean - half, upper: mean + half}
    named = {path: table.rename_axis("time") for path, table in tables.items() if path is not None}
    write_tables(named, **files.dialect_for(date_format, inputs))
    first, last, n_nodes = mean.index[0], mean.index[-1], mean.shape[1]
    paths = {"out": out, "std": std, "lower": lower, "upper": upper}
    known = {"n_steps": steps, "n_nodes": n_nodes, "first": str(first), "last": str(last)}
    return paths | known, f"Forecast {steps} steps at {n_nodes} nodes, {first} to {last}: {out}"


@command("Condition a model on new rows, without refitting it.")
def update(
    model: option.ModelFile,
    signals: Annotated[Path, option.other_file("New rows; those that the model knows already are left out.")],
    out: Annotated[
        Path | None, option.new_file("File for the updated model; by default that of the model itself.")
    ] = None,
    inputs: option.Inputs = None,
    scores: Annotated[
        Path | None, option.new_file("Table of anomaly scores of the new values of a series to write.")
    ] = None,
    force: option.Force = False,
    *,
    observing: option.ObservationOptions,
    table: option.TableOptions,
) -> Answer:
    r"""Condition a model on new rows, with unchanged hyperparameters.

    Forecasts of a series then start after the last new row; rows up to its former last one are left out. With time or
    lag:1 as inputs, training rows of a model of signals are left out.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs time --season auto --out series.sgp
      spectralgp update series.sgp --signals files/later.csv --scores odd.csv
      spectralgp fit --graph files/edges.csv --signals files/incomes.csv \
        --inputs lag:1 --out model.sgp --force
      spectralgp update model.sgp --signals files/later.csv --out later.sgp
    """
    from spectralgp.cli import answers, files

    check_outputs(out, scores, force=force)
    fitted, target = spectralgp.load(model), model if out is None else out
    if isinstance(fitted, spectralgp.GraphGPForecaster):
        answer = answers.update_series(fitted, model, signals, files.input_parts(inputs), table, scores)
        said = (
            f"Added {answer['n_new']} rows; the series has {answer['n_steps']}: {target}\nThe most anomalous row is "
            f"{answer['oddest']}, at {answer['score']:.2f} times the usual deviation."
        )
    elif scores is not None:
        raise typer.BadParameter("--scores must be left out: the model is not of a series, as fitted with --season.")
    else:
        known = files.signal_model(fitted, model)
        fitted, answer = answers.conditioned(known, model, signals, inputs, table, observing)
        said = f"Added {answer['n_new']} rows; the model has {answer['n_signals']} signals: {target}"
    fitted.save(target)
    if answer["n_left_out"]:
        typer.echo(f"note: {answer['n_left_out']} rows that the model knows are left out", err=True)
    return {"model": target, **answer}, said


@command("Draw nodes over time, a map, or filters.")
def plot(
    model: option.ModelFile,
    out: Annotated[Path, option.new_file("Picture (.png, .svg, .pdf) or page (.html) to write.")],
    node: Annotated[list[str] | None, option.plain("Draw a node over time; may be repeated.", metavar="NAME")] = None,
    draw_map: Annotated[bool, typer.Option("--map", help="Draw a row of the signals on the graph.")] = False,
    row: Annotated[
        str | None, option.plain("Label of the row on the map; the last by default.", metavar="LABEL")
    ] = None,
    signals: Annotated[Path | None, option.other_file("Signals to draw; the model imputes empty cells.")] = None,
    inputs: option.Inputs = None,
    steps: Annotated[
        int | None, option.plain("Number of rows to forecast, of a series (12; on a map 1).", min=1)
    ] = None,
    level: Annotated[float, option.share("Probability of intervals.")] = 0.9,
    title: option.Title = None,
    force: option.Force = False,
    *,
    table: option.TableOptions,
) -> Answer:
    r"""Draw nodes over time, a map or, without either, the learnt filters.

    A node over time shows observed and imputed values, with intervals; without missing values, its predictions. A node
    of a series shows the forecast.

    Example (the files are those of `spectralgp example`):
      spectralgp fit --points files/states.csv --neighbors 5 \
        --signals files/missing.csv --inputs time --out missing.sgp
      spectralgp plot missing.sgp --map --row 1975 \
        --signals files/missing.csv --out map.html
      spectralgp plot missing.sgp --node Maine --node Texas \
        --signals files/missing.csv --out nodes.png
    """
    from spectralgp.cli import files, pictures

    nodes = node or []
    check_outputs(out, force=force)
    pictures.check_picture(out, nodes, draw_map, row)
    fitted = spectralgp.load(model)
    if not isinstance(fitted, spectralgp.GraphGPForecaster):
        files.signal_model(fitted, model)
    names = [str(name) for name in fitted.node_names_ or range(fitted.graph_.n_nodes)]
    unknown = [name for name in nodes if name not in names]
    if unknown:
        raise ValueError(f"--node must be a node of {model}; got {unknown[0]}. The first of them are {names[:5]}.")
    if isinstance(fitted, spectralgp.GraphGPForecaster):
        if inputs is not None:
            raise typer.BadParameter("--inputs must be left out for a series.")
    else:
        if steps is not None:
            raise typer.BadParameter("--steps must be left out: the model is not of a series, as fitted with --season.")
        if (nodes or draw_map) and signals is None:
            raise typer.BadParameter("--signals must be given with --node or --map, which draw them.")
        if signals is not None and not (nodes or draw_map):
            raise typer.BadParameter("--signals must come with --node or --map: filters are drawn without.")
    figure, axes = pictures.new_figure(len(nodes), draw_map)
    with files.naming_file(model if signals is None else signals):
        if isinstance(fitted, spectralgp.GraphGPForecaster):
            past = None if signals is None else files.signal_table(signals, fitted.graph_, table)
            pictures.draw_series(fitted, past, [names.index(name) for name in nodes], draw_map, steps, level, axes)
        else:
            data = None if signals is None else files.fitted_data(fitted, signals, inputs, table)
            pictures.draw_signals(fitted, data, nodes, row, level, axes)
    for ax in axes[: len(nodes)]:
        ax.label_outer()
    drawn = ", ".join(nodes) if nodes else "map" if draw_map else "filters"
    pictures.save_figure(figure, out, title, f"{model.name}: {drawn}")
    return {"out": out, "n_bytes": out.stat().st_size}, f"Picture: {out}"


@command("Write a page about a model.")
def report(
    model: option.ModelFile,
    out: Annotated[Path, option.new_file("Page to write.", metavar="FILE.html")],
    signals: Annotated[
        Path | None,
        option.other_file(
            "Signals to score the model on; leave-one-out by default. Of a series: rows to show before the forecast, "
            "and later ones to score it on."
        ),
    ] = None,
    inputs: option.Inputs = None,
    steps: Annotated[int, option.plain("Number of rows to forecast, of a series.", min=1)] = 24,
    title: option.Title = None,
    aspect: Annotated[
        float | None, option.plain("Aspect ratio of the map, height to width; 1 / cos(latitude) for degrees.", min=0.1)
    ] = None,
    force: option.Force = False,
    *,
    table: option.TableOptions,
) -> Answer:
    r"""Write a page about a model: how well it predicts, compared with baselines.

    Then a map, a node over time, the relations of neighbours, calibration and filters. The page is one HTML file that
    needs no network.

    Example (the model is that of `spectralgp fit --help`):
      spectralgp report model.sgp --signals files/later.csv --out report.html
    """
    from spectralgp.cli import files

    check_outputs(out, force=force)
    fitted, given = spectralgp.load(model), tuple[Any, ...]()
    options: dict[str, Any] = {"title": title, "aspect": "equal" if aspect is None else aspect}
    if isinstance(fitted, spectralgp.GraphGPForecaster):
        exogenous = files.exogenous(fitted, files.input_parts(inputs).table, table.date_format)
        given = (None if signals is None else files.signal_table(signals, fitted.graph_, table), exogenous)
        options["horizon"] = steps
    elif files.signal_model(fitted, model) and signals is not None:
        data = files.fitted_data(fitted, signals, inputs, table)
        given = (data.inputs, data.signals)
    elif inputs is not None:
        raise typer.BadParameter("--inputs must be left out without --signals: they are inputs of these.")
    with files.naming_file(model if signals is None else signals):
        path = fitted.report(out, *given, **options)
    return {"out": path, "n_bytes": path.stat().st_size}, f"Report: {path}"


@command("Impute outages of sensors, and compare with other methods.")
def demo(
    out: Annotated[Path, option.plain("Folder for the picture.", file_okay=False)] = Path("demo-output"),
) -> Answer:
    """Impute outages of sensors; compare with other methods, and save a picture.

    Example:
      spectralgp demo --out pictures
    """
    from spectralgp.cli import showcase

    return showcase.demonstrated(out)


@command("Write files to try the other commands with.")
def example(
    out: Annotated[Path, option.plain("Folder for the files.", file_okay=False)] = Path("files"),
    force: option.Force = False,
) -> Answer:
    """Write files to try the other commands with: incomes of 48 US states, in per cent above the typical state.

    edges.csv (borders), states.csv (coordinates), incomes.csv (1960 to 1989), later.csv (1989 to 2009, to predict) and
    missing.csv (1960 to 2009, a tenth of the cells empty).

    Example:
      spectralgp example --out files
    """
    from spectralgp.cli.showcase import example_tables
    from spectralgp.files.tables import write_tables

    out.mkdir(parents=True, exist_ok=True)
    tables = {out / name: table for name, table in example_tables().items()}
    check_outputs(*tables, force=force)
    write_tables(tables, index=False)
    return {"files": list(tables)}, "\n".join(map(str, tables))


@command("List versions, threads and devices.")
def info() -> Answer:
    """List versions, threads and devices.

    Example:
      spectralgp info
    """
    from spectralgp.cli.installation import installed

    return installed()


def _check_output(output: option.OutputOptions) -> None:
    check_outputs(output.out, output.std, force=output.force)
    if output.long and output.std is not None:
        raise typer.BadParameter("--std must be left out with --long, whose table has a column for it.")
