// temporary, replaced by its author
export async function reconcileChain(_w: unknown, _c: unknown): Promise<void> {}
