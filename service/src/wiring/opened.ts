/** What was opened so far, and how to close it. */
export type Opened = {
  /** Remembers how to close what was just opened. */
  closeWith(close: () => Promise<void> | void): void
  /** Closes everything, the last opened first, whatever fails on the way; throws the first failure at the end. */
  closeAll(): Promise<void>
}

export function nothingOpened(): Opened {
  const closers: (() => Promise<void> | void)[] = []
  return {
    closeWith: (close) => void closers.push(close),
    closeAll: async () => {
      const failures: unknown[] = []
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
        try {
          await close()
        } catch (error) {
          failures.push(error)
        }
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}
