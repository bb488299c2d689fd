/**
 * How long tests wait for what comes in a moment: a machine that is busy with others takes many times as long, and a
 * process that stands still for some seconds finds its timers run out before it reads the answers that lie there. Only
 * what really hangs takes so long.
 */
export const PATIENCE_MS = 60_000

/** For a whole start: a process loads all of its modules, and beside it, it may be, a database and ten chains begin. */
export const START_PATIENCE_MS = 3 * PATIENCE_MS
