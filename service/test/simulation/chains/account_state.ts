/** Numbers by name, each with its past: what it was at a height, and a way back. */
export class AccountState {
  readonly #values = new Map<string, { readonly height: number; readonly value: bigint }[]>()
  readonly #touched = new Map<number, Set<string>>()

  /** At the end of the block at `height`, or of the newest. */
  read(name: string, height = Number.POSITIVE_INFINITY): bigint {
    return this.#values.get(name)?.findLast((one) => one.height <= height)?.value ?? 0n
  }

  write(name: string, height: number, value: bigint): void {
    const past = this.#values.get(name) ?? []
    if (past.at(-1)?.height === height) past.pop()
    past.push({ height, value })
    this.#values.set(name, past)
    const touched = this.#touched.get(height) ?? new Set()
    this.#touched.set(height, touched.add(name))
  }

  add(name: string, height: number, more: bigint): void {
    this.write(name, height, this.read(name) + more)
  }

  /** The newest block never was. */
  forget(height: number): void {
    for (const name of this.#touched.get(height) ?? []) this.#values.get(name)?.pop()
    this.#touched.delete(height)
  }
}
