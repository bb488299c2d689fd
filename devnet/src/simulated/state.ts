/** One entry of a chain's state that a block changed; null: it is gone. */
export type Change<Entry> = readonly [key: string, entry: Entry | null]

export type State<Entry> = {
  get(key: string): Entry | undefined
  /** Every key that starts so, in no particular order. */
  keys(prefix: string): string[]
}

/** Changes on top of a state that stays as it is. Entries are never changed in place: a change is a new entry. */
export type Draft<Entry> = State<Entry> & {
  set(key: string, entry: Entry): void
  delete(key: string): void
  changes(): Change<Entry>[]
}

/**
 * Every version of every entry. Chosen over snapshots and undo lists because the same few lines go back exactly in a
 * reorganisation, answer what an account held at an old height, and tell the file what a block changed.
 */
export type History<Entry> = {
  /** What the chain said at that height; later blocks do not show. */
  at(height: number): State<Entry>
  commit(height: number, changes: readonly Change<Entry>[]): void
  /** Forgets all that came after `height`. */
  goBack(height: number): void
}

type Version<Entry> = { readonly height: number; readonly entry: Entry | null }

export function createHistory<Entry>(): History<Entry> {
  const versions = new Map<string, Version<Entry>[]>()
  const changedAt = new Map<number, readonly string[]>()
  const entryAt = (key: string, height: number) =>
    versions.get(key)?.findLast((version) => version.height <= height)?.entry ?? undefined
  return {
    at: (height) => ({
      get: (key) => entryAt(key, height),
      keys: (prefix) =>
        [...versions.keys()].filter((key) => key.startsWith(prefix) && entryAt(key, height) !== undefined),
    }),
    commit: (height, changes) => {
      for (const [key, entry] of changes) {
        const known = versions.get(key)
        if (known === undefined) versions.set(key, [{ height, entry: freeze(entry) }])
        else known.push({ height, entry: freeze(entry) })
      }
      changedAt.set(
        height,
        changes.map(([key]) => key),
      )
    },
    goBack: (height) => {
      for (const [later, keys] of changedAt) {
        if (later <= height) continue
        changedAt.delete(later)
        for (const key of keys) {
          const left = (versions.get(key) ?? []).filter((version) => version.height <= height)
          if (left.length === 0) versions.delete(key)
          else versions.set(key, left)
        }
      }
    },
  }
}

export function draftOn<Entry>(below: State<Entry>): Draft<Entry> {
  const changed = new Map<string, Entry | null>()
  return {
    get: (key) => (changed.has(key) ? (changed.get(key) ?? undefined) : below.get(key)),
    keys: (prefix) => {
      const kept = below.keys(prefix).filter((key) => !changed.has(key))
      const own = [...changed].filter(([key, entry]) => key.startsWith(prefix) && entry !== null)
      return [...kept, ...own.map(([key]) => key)]
    },
    set: (key, entry) => changed.set(key, freeze(entry)),
    delete: (key) => changed.set(key, null),
    changes: () => [...changed],
  }
}

/** Makes the changes of one draft part of another. */
export function takeOver<Entry>(into: Draft<Entry>, changes: readonly Change<Entry>[]): void {
  for (const [key, entry] of changes) {
    if (entry === null) into.delete(key)
    else into.set(key, entry)
  }
}

/** Whoever changes an entry in place would change the past too: it throws instead. */
function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) freeze(inner)
  return Object.freeze(value)
}
