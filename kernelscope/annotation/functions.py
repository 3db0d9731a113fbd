"""Ranges around the calls of a function: the decorator `annotate`."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial, wraps
from typing import Any, TypeVar, cast, overload

from kernelscope.annotation import nvtx_calls, scheme
from kernelscope.annotation.ranges import PushedRange, Range, attributes

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def annotate(function: Function, /) -> Function: ...
@overload
def annotate(
    name: str | None = None,
    /,
    *,
    domain: str = scheme.DOMAIN,
    category: str | int | None = None,
    payload: float | None = None,
) -> Callable[[Function], Function]: ...
def annotate(
    function: Any = None,
    /,
    *,
    domain: str = scheme.DOMAIN,
    category: str | int | None = None,
    payload: float | None = None,
) -> Any:
    """Put a range around each call of a function: ``@annotate``, ``@annotate("name", …)``.

    Parameters
    ----------
    function : callable or str, optional
        The function, or the range's name; by default the function's qualified name. Its module
        and qualified name are said as the range's path.
    domain, category, payload
        As for :func:`phase`.

    Returns
    -------
    callable
        The function itself where no tool listens, and one that opens the range around each call
        else. Of a generator, each stretch that it runs has a range; a coroutine has one.

    Raises
    ------
    TypeError
        If what is decorated is no function (a class, a ``staticmethod``).
    """
    if function is None or isinstance(function, str):
        return partial(_annotated, function, domain=domain, category=category, payload=payload)
    return _annotated(None, function, domain=domain, category=category, payload=payload)


def _annotated(
    name: str | None,
    function: Any,
    *,
    domain: str,
    category: str | int | None,
    payload: float | None,
) -> Any:
    if isinstance(function, type | staticmethod | classmethod) or not hasattr(
        function, "__qualname__"
    ):
        raise TypeError(f"annotate stands right above a def, and {function!r} is none.")
    payload = nvtx_calls.number(payload)
    listening = nvtx_calls.domain(domain)
    if listening is None:
        return function
    title = name or function.__qualname__
    held = PushedRange(
        listening,
        attributes(
            listening,
            scheme.FUNCTION,
            title,
            category=category,
            payload=payload,
            path=f"{function.__module__}.{function.__qualname__}",
        ),
        title,
    )
    return wraps(function)(_around(function, held))


def _around(function: Any, held: Range) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function):
        return _around_async_generator(function, held)
    if inspect.isgeneratorfunction(function):
        return _around_generator(function, held)
    if inspect.iscoroutinefunction(function):

        async def awaited(*arguments: Any, **named: Any) -> Any:
            with held:
                return await function(*arguments, **named)

        return awaited

    def called(*arguments: Any, **named: Any) -> Any:
        with held:
            return function(*arguments, **named)

    return called


def _around_generator(function: Any, held: Range) -> Callable[..., Any]:
    def generated(*arguments: Any, **named: Any) -> Generator[Any, Any, Any]:
        inner = cast("Generator[Any, Any, Any]", function(*arguments, **named))
        resume: Callable[[], Any] = partial(next, inner)
        while True:
            try:
                with held:
                    item = resume()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield item
            except GeneratorExit:
                with held:
                    inner.close()
                raise
            except BaseException as thrown:  # noqa: BLE001 - it is handed on to the generator
                resume = partial(inner.throw, thrown)
            else:
                resume = partial(inner.send, sent)

    return generated


def _around_async_generator(function: Any, held: Range) -> Callable[..., Any]:
    async def generated(*arguments: Any, **named: Any) -> AsyncGenerator[Any, Any]:
        inner = cast("AsyncGenerator[Any, Any]", function(*arguments, **named))
        resume: Callable[[], Any] = partial(anext, inner)
        while True:
            try:
                with held:
                    item = await resume()
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except GeneratorExit:
                with held:
                    await inner.aclose()
                raise
            except BaseException as thrown:  # noqa: BLE001 - it is handed on to the generator
                resume = partial(inner.athrow, thrown)
            else:
                resume = partial(inner.asend, sent)

    return generated
