// temporary, replaced by its author
export async function readReadiness(_w: unknown): Promise<{ready: boolean, checks: {}}> { return {ready: true, checks: {}} }
