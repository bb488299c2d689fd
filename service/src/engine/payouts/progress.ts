/** What a step of an outflow came to: when to look again, and what stands in the way, if anything does. */
export type Progress =
  | { readonly kind: 'done' }
  | { readonly kind: 'again'; readonly inMs: number }
  | { readonly kind: 'trouble'; readonly message: string; readonly inMs: number }
