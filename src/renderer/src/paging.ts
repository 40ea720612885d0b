import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { OperationOutput, OperationRequest } from '../../contract/operations.ts';
import { useMemory } from './memory-context.tsx';

type PagedOperation = 'activity' | 'inbox';

/** Reads a list page by page. `showMore` reads the next page; it is undefined if there is none. */
export function usePagedOperation<Name extends PagedOperation>(name: Name, limit: number) {
  const { call, subject } = useMemory();
  const { data, error, isPending, isFetching, hasNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: [subject, name],
    // Both operations take the same input. The compiler cannot follow that through the type parameter.
    queryFn: ({ pageParam }): Promise<OperationOutput<Name>> =>
      call(name, { limit, ...(pageParam !== '' && { cursor: pageParam }) } as OperationRequest<Name>),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor: next }: { readonly next_cursor?: string }) => next,
  });
  const [wanted, setWanted] = useState(1);
  const loaded = data?.pages.length ?? 0;
  // A change causes a refetch, which cancels a request for the next page. So request the next page again.
  useEffect(() => {
    if (loaded < wanted && hasNextPage && !isFetching) void fetchNextPage();
  }, [loaded, wanted, hasNextPage, isFetching, fetchNextPage]);
  return {
    pages: data?.pages ?? [],
    error,
    isPending,
    isLoading: loaded < wanted,
    showMore: hasNextPage ? () => setWanted(loaded + 1) : undefined,
  };
}
