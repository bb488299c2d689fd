/** What a step of an outflow came to: when to look again, and what stands in the way, if anything does. */
export type Progress =
  | { readonly kind: 'done' }
  /** `atHeight`: not before this block, or the next one, was looked at; what a chain decides changes with a block. */
  | { readonly kind: 'again'; readonly inMs: number; readonly atHeight?: number | 'next' }
  | { readonly kind: 'trouble'; readonly message: string; readonly inMs: number }
