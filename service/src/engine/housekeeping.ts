// temporary, replaced by its author
export async function keepHouse(_w: unknown): Promise<boolean> { return false }
