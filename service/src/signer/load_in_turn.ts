let last: Promise<unknown> = Promise.resolve()

/**
 * Loads what is slow to load and not always needed, after everything that was asked for before. A library may `require`
 * a module that another one is about to `import()`; Node refuses (ERR_REQUIRE_ESM_RACE_CONDITION) and remembers it.
 */
export function loadInTurn<Module>(load: () => Promise<Module>): Promise<Module> {
  const loaded = last.then(load)
  last = loaded.catch(() => {})
  return loaded
}
