export type Question = {
  readonly path: string
  readonly query: URLSearchParams
  /** What was posted, out of JSON. */
  readonly body: unknown
}

/** Answers JSON text, as a node whose newest block is `head`. Throws at what no watcher asks. */
export type BlockNode = (question: Question, head: number) => string

/** Makes the blocks from 0 to `last`. */
export type OpenBlockNode = (last: number) => BlockNode
